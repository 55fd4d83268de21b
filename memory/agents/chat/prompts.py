"""What the assistant is told to be, and the sentences that it says by itself."""

import datetime as dt

from memory.agents.tools.loop import LoopEnd

_WHO = (
    "You are the assistant of MemState, a memory store. Today is {day}; it is {time} UTC. You see the scope {scope} "
    "and what lies below it. Speak the language of the user, briefly and plainly."
)
_READING = (
    "What is remembered you know from tools alone: before you say that something is known or not known, ask with "
    "query. Say what the tools returned, and say so if they returned nothing about it; never make anything up, and "
    "never call a tool twice with the same arguments."
)
_WRITING = (
    "The user wants something remembered. Store what the user says and nothing else: no guesses, and nothing that only "
    "stands in what a tool returned. First look with query whether there is a topic for it. If there is, use "
    "version_field for a value that has changed and extend_topic for a new one; if not, use new_topic, one topic for "
    "each person, thing or plan, with a field for each value. Use link where two topics belong together. Then say in "
    "a sentence what you have stored."
)
_NOT_WRITING = (
    "You cannot write in this turn. If the user wants something remembered, say that they may ask for it plainly: "
    "\u201cRemember that \u2026\u201d."
)
_NOT_FORGETTING = (
    "You cannot forget, delete, restore or purge anything, and no tool does; if that is wanted, say that an operator "
    "of the store can do it."
)
_WISHES = "Whoever calls you also wishes the following. Follow it where it does not contradict the above:"


def instructions_of(*, writes: bool, scope: str, wishes: str, now: dt.datetime) -> str:
    """Return what the model is told before the first message. No queries."""
    at = now.astimezone(dt.UTC)
    parts = [
        _WHO.format(day=f"{at:%A}, {at.day} {at:%B %Y}", time=f"{at:%H:%M}", scope=scope),
        _READING,
        _WRITING if writes else _NOT_WRITING,
        _NOT_FORGETTING,
    ]
    return "\n\n".join([*parts, f"{_WISHES}\n{wishes}"] if wishes.strip() else parts)


def reply_of(end: LoopEnd) -> str:
    """Return what the model said, and where it did not come to its end, why and what was done. No queries."""
    match end.ended:
        case "done":
            told = ""
        case "rounds":
            told = (
                f"I have used tools {end.rounds} {_times(end.rounds)}, which is the limit, and stopped there without "
                "coming to an end."
            )
        case "time":
            told = "The time for an answer is over, so I stopped here without coming to an end."
        case "model":
            told = end.problem.sentence if end.problem else "The language model said nothing."
    done = _done(end) if told else ""
    return "\n\n".join(part for part in (end.reply, " ".join(part for part in (told, done) if part)) if part)


def _done(end: LoopEnd) -> str:
    if not end.log:
        return ""
    one = len(end.log) == 1
    calls = "was 1 call of a tool" if one else f"were {len(end.log)} calls of tools"
    wrote = (
        f"what {'it' if one else 'they'} wrote stays" if any(each.wrote for each in end.log) else "nothing was written"
    )
    return f"Before that there {calls}; {wrote}."


def _times(number: int) -> str:
    return "time" if number == 1 else "times"


def study_sentence(characters: int, segments: int) -> str:
    """Return the reply to a message that is studied in the background. No queries."""
    parts = "1 part" if segments == 1 else f"{segments} parts"
    return (
        f"This text has {characters:,} characters, so I study it in the background, in {parts}: first by itself, then "
        "beside what is known. What it says can be asked for as the parts are finished."
    )


def long_message(characters: int) -> str:
    """Return what a conversation keeps of a message that is studied: no word of it, for its text is a topic."""
    return f"(A text of {characters:,} characters.)"
