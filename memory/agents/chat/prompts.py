"""The instructions for the assistant, and the fixed sentences of its replies."""

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
    """Return the system message for the model."""
    at = now.astimezone(dt.UTC)
    parts = [
        _WHO.format(day=f"{at:%A}, {at.day} {at:%B %Y}", time=f"{at:%H:%M}", scope=scope),
        _READING,
        _WRITING if writes else _NOT_WRITING,
        _NOT_FORGETTING,
    ]
    return "\n\n".join([*parts, f"{_WISHES}\n{wishes}"] if wishes.strip() else parts)


def reply_of(end: LoopEnd) -> str:
    """Return the answer of the model. If the loop ended early, add the reason and whether anything was written."""
    match end.ended:
        case "done":
            return end.reply
        case "rounds":
            times = "time" if end.rounds == 1 else "times"
            reason = f"I stopped before I was done, because I have used tools {end.rounds} {times}, which is the limit."
        case "time":
            reason = "I stopped before I was done, because the time limit was reached."
        case "model":
            reason = end.problem.sentence if end.problem else "The language model returned no answer."
    if end.log:
        calls = "1 tool call was made" if len(end.log) == 1 else f"{len(end.log)} tool calls were made"
        wrote = "What was written is kept." if any(each.wrote for each in end.log) else "Nothing was written."
        reason += f" Before that, {calls}. {wrote}"
    return f"{end.reply}\n\n{reason}" if end.reply else reason


def study_sentence(characters: int, segments: int) -> str:
    """Return the reply to a long message that is studied in the background."""
    parts = "1 part" if segments == 1 else f"{segments} parts"
    return (
        f"This text has {characters:,} characters, so I study it in the background, in {parts}: first on its own, then "
        "together with existing topics. You can ask about each part as soon as it is finished."
    )


def long_message(characters: int) -> str:
    """Return the text that is stored in place of a message that is studied. The message itself becomes a topic."""
    return f"(A text of {characters:,} characters.)"
