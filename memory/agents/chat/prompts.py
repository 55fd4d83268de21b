"""The instructions for the assistant, and the fixed sentences of its replies."""

import datetime as dt

from memory.agents.tools.loop import LoopEnd

_WHO = (
    "You are the assistant of MemState, a memory store. Today is {day}; it is {time} UTC. You can see the scope "
    "{scope} and everything below it. Reply in the language of the user, in short and plain sentences."
)
_READING = """
How to answer questions:
- You know what is stored only from tools. Call query before you say that something is known or not known.
- Say what the tools returned. If they returned nothing about it, say so. Never invent anything.
- Never call a tool twice with the same arguments.
""".strip()
_WRITING = """
The user wants something remembered. How to store it:
- Store what the user says. Do not store guesses, or anything that is only in the result of a tool.
- First call query to see whether a topic about it exists.
- If it exists, call version_field for a value that has changed, and extend_topic for a new value.
- If it does not exist, call new_topic: one topic for each person, thing or plan, with a field for each value.
- Call link for topics that belong together.
- Then say in one sentence what you have stored.
Example: for "Mara moved to Lisbon", call query for Mara, then version_field with field city and value Lisbon.
""".strip()
_NOT_WRITING = (
    "You cannot store anything in this turn. If the user wants something remembered, tell them to write: "
    "\u201cRemember that \u2026\u201d."
)
_NOT_FORGETTING = (
    "You cannot forget, delete, restore or purge anything, and no tool can. If the user wants that, say that an "
    "operator of the store can do it."
)
_WISHES = "The caller adds these instructions. Follow them unless they contradict those above:"


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
