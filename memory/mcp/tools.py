"""The tools that a key may call: those of ``memory.agents.tools``, ``extract``, and ``forget`` if the key may
forget."""

import datetime as dt
import uuid
from typing import Any

from django.conf import settings
from pydantic import Field

from memory.access.principal import Principal
from memory.agents.tools.read_tools import reading_tools
from memory.agents.tools.tool import Arguments, Tool, Toolbox, ToolCalled, ToolReply
from memory.agents.tools.write_log import item_write
from memory.agents.tools.write_tools import Kind, writing_tools
from memory.core.callbacks import Clock
from memory.core.errors import NotVisible, ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import MAX_QUERY, forget_execute, forget_list
from memory.erasure.forget_list_read import listing_matches
from memory.erasure.supersede import MAX_TEXT, Ambiguous, supersede
from memory.extraction.request import extract
from memory.ingest.items import Category, IngestItem, LongText
from memory.ingest.plan import ItemReply
from memory.jobs import tasks
from memory.predicates.search_text import MAX_LENGTH
from memory.recall.lookup import TopicListFilter, topics_list
from memory.recall.search import search_read

# The provenance of written values. The journal records which key has written them.
PROVENANCE = "mcp"
# The most topics of a list to forget that the model sees.
_MAX_LISTED = 50


class FactsArguments(Arguments):
    """A text to extract facts from."""

    content: str = Field(min_length=1, max_length=2_000_000, description="Prose, a list or a transcript.")


class ExtractArguments(FactsArguments):
    """A text whose facts are stored."""

    store: bool = Field(default=True, description="False only lists the facts and writes nothing.")
    kind: Kind | None = Field(default=None, description="Kind of the topics that facts become; fact if left out.")


class SearchArguments(Arguments):
    """A search with conditions."""

    search: str = Field(
        max_length=MAX_LENGTH,
        description='Words, "phrases" and conditions: kind:note category:work scope:/user/mara field:city=Oslo '
        "created:<7d used:never rung:archived is:released. OR combines alternatives, a minus excludes.",
    )
    limit: int = Field(default=20, ge=1, le=100)
    cursor: str | None = Field(default=None, max_length=500, description="next of the page before.")


class SupersedeArguments(Arguments):
    """A fact, and what replaces it."""

    old_query: str = Field(min_length=1, max_length=MAX_TEXT, description="The fact as it was, or words that name it.")
    new_text: str = Field(min_length=1, max_length=MAX_TEXT, description="What is true now, as a whole sentence.")
    reason: LongText = Field(default="", description="Why, for the journal.")
    token: str | None = Field(default=None, max_length=2_000, description="token of the candidate that is meant.")


class ForgetArguments(Arguments):
    """What to forget, or the list that is confirmed."""

    query: str | None = Field(default=None, min_length=1, max_length=MAX_QUERY, description="What to forget, in words.")
    scope: str | None = Field(default=None, max_length=500, description="A path within the scope of the key.")
    older_than: str | None = Field(default=None, max_length=50, description="Age since creation: 30d, 2w, 6m, 1y.")
    categories: list[Category] | None = Field(default=None, max_length=50, description="Any of them.")
    topic_ids: list[uuid.UUID] | None = Field(default=None, max_length=1_000)
    reason: LongText = Field(default="", description="Why, for the journal.")
    confirm: str | None = Field(default=None, max_length=100, description="confirm of the list that is to be done.")


def _search_tool(principal: Principal, clock: Clock) -> Tool[Any]:
    def run(asked: SearchArguments) -> ToolReply:
        wanted = TopicListFilter(scope=principal.scope, search=search_read(asked.search, principal=principal))
        page = topics_list(wanted, cursor=asked.cursor, limit=asked.limit, now=clock())
        shown = [
            {
                "topic_id": each["topic_id"],
                "label": each["label"],
                "kind": each["topic_kind"],
                "scope": each["scope"],
                "stands": "released" if each["released_at"] else each["rung"],
                "created_at": each["created_at"].isoformat(),
            }
            for each in page["items"]
        ]
        seen = [uuid.UUID(each["topic_id"]) for each in page["items"]]
        return ToolReply({"topics": shown, "next": page["next"]}, seen=seen)

    return Tool(
        "search",
        "List topics that meet conditions, newest first, archived ones too. Use it to go through topics; to answer a "
        "question, use query.",
        SearchArguments,
        run,
    )


def tools_make(principal: Principal, *, clock: Clock) -> list[Tool[Any]]:
    """Return the tools that this key may call, the reading tools first. No query."""
    reading = [*reading_tools(principal, clock=clock), _search_tool(principal, clock)]
    if not principal.covers("agent"):
        return [*reading, _extract_tool(principal, clock, writes=False)]
    tools = [*reading, *_writing_tools(principal, clock), _extract_tool(principal, clock, writes=True)]
    return [*tools, _forget_tool(principal, clock)] if principal.may_forget else tools


def tool_call(name: str, arguments: str, *, principal: Principal, clock: Clock) -> ToolCalled:
    """Call a tool with arguments as JSON text, and return its result. No queries except those of the tool.

    Raises ``NotAllowed`` if the key may not call the tool, ``NotVisible`` for an unknown name, and database errors.
    """
    toolbox = Toolbox(tools_make(principal, clock=clock))
    if name not in toolbox.tools:
        if name in {tool.name for tool in _writing_tools(principal, clock)}:
            principal.require("agent")
        raise NotVisible(f"Tool {name[:100]!r} does not exist.")
    called = toolbox.call(name, arguments)
    tasks.upkeep_nudge()
    return called


def _writing_tools(principal: Principal, clock: Clock) -> list[Tool[Any]]:
    def write(item: IngestItem) -> ItemReply:
        return item_write(item, principal=principal, now=clock())

    return [*writing_tools(write, provenance=PROVENANCE), _supersede_tool(principal, clock)]


def _supersede_tool(principal: Principal, clock: Clock) -> Tool[Any]:
    def run(asked: SupersedeArguments) -> ToolReply:
        try:
            done = supersede(
                asked.old_query,
                asked.new_text,
                reason=asked.reason,
                token=asked.token,
                principal=principal,
                now=clock(),
            )
        except Ambiguous as problem:
            return ToolReply({"question": problem.sentence, "candidates": problem.candidates})
        return ToolReply(
            {"topic_id": done["topic_id"], "superseded": done["superseded"]},
            [uuid.UUID(done["topic_id"]), *(uuid.UUID(each["topic_id"]) for each in done["superseded"])],
        )

    return Tool(
        "supersede",
        "Replace a fact that is no longer true or was wrong by what is true now, wherever it is stored: in a title, a "
        "summary or a field. The old text stays on record. If the reply has candidates, nothing was changed: call it "
        "again with the token of the one that is meant.",
        SupersedeArguments,
        run,
        writes=True,
    )


def _extract_tool(principal: Principal, clock: Clock, *, writes: bool) -> Tool[Any]:
    bounds = f"At most {settings.MEMSTATE_EXTRACT_MAX_CHARS:,} characters at once."
    if not writes:
        return Tool(
            "extract",
            f"Take a text apart into self-contained facts, without remembering them. {bounds}",
            FactsArguments,
            lambda asked: _extracted(asked.content, kind=None, store=False, principal=principal, now=clock()),
        )
    return Tool(
        "extract",
        "Take a text apart into self-contained facts and remember those that are not known yet. Use it for more than "
        f"a few sentences, such as notes or a conversation. {bounds}",
        ExtractArguments,
        lambda asked: _extracted(asked.content, kind=asked.kind, store=asked.store, principal=principal, now=clock()),
        writes=True,
    )


def _forget_tool(principal: Principal, clock: Clock) -> Tool[Any]:
    def run(asked: ForgetArguments) -> ToolReply:
        now = clock()
        if asked.confirm is None:
            wanted = ForgetFilter(
                older_than=asked.older_than, categories=asked.categories, ids=asked.topic_ids, scope=asked.scope
            )
            listing = forget_list(
                "release", query=asked.query, wanted=wanted, reason=asked.reason, principal=principal, now=now
            )
        elif asked.model_fields_set - {"confirm", "reason"}:
            raise ValueRefused(
                "confirm identifies its list. Give nothing else with it.", code=ProblemCode.CONTRADICTORY_REQUEST
            )
        else:
            listing = forget_execute(
                asked.confirm, verb="release", principal=principal, now=now, reason=asked.reason or None
            )
        shown = [each for each in listing_matches(listing) if each["chosen"]][:_MAX_LISTED]
        result = {
            "forgotten": listing.executed_at is not None,
            "count": listing.count,
            "topics": [{"topic_id": each["topic_id"], "title": each["title"], "why": each["why"]} for each in shown],
            "confirm": listing.token,
            "question": listing.question,
            "run_id": str(listing.run_id) if listing.run_id else None,
        }
        return ToolReply(result, [uuid.UUID(each["topic_id"]) for each in shown])

    return Tool(
        "forget",
        "Take topics out of the memory, only because a person asks for it. Say what to forget by any of query, scope, "
        "older_than, categories and topic_ids: nothing is done yet, you get the list. If it is right, call forget "
        "again with the value of confirm from the list. An operator can undo it.",
        ForgetArguments,
        run,
        writes=True,
    )


def _extracted(content: str, *, kind: str | None, store: bool, principal: Principal, now: dt.datetime) -> ToolReply:
    done = extract(content, scope=None, kind=kind, store=store, principal=principal, now=now)
    known = done["skipped_duplicates"]
    result = {
        "facts": done["extracted"],
        "stored": done["stored"],
        "known": known,
        "dropped": done["dropped"],
        "note": done["note"],
    }
    if done["warning"]:
        result["warning"] = done["warning"]
    return ToolReply(result, [uuid.UUID(each) for each in [*done["stored"], *(fact["topic_id"] for fact in known)]])
