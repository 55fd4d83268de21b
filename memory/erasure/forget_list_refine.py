"""Makes a new list from a list: with some of its topics, or for the same request again."""

import datetime as dt
import uuid
from collections.abc import Sequence

from memory.access.principal import Principal
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.erasure.forget_lists import Listing


def listing_narrow(listing: Listing, ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime) -> Listing:
    """Return a new list of those topics of ``listing`` that a user has picked.

    The request runs again on these topics, so that a topic keeps facts to which the request does not refer. If the
    result is still ambiguous, whole topics are listed. Costs at most twice as much as ``forget_list``, and raises as
    that does.
    """
    wanted = ForgetFilter(ids=tuple(ids))
    if listing.query:
        made = forget_list(
            listing.verb,
            query=listing.query,
            wanted=wanted,
            scope=listing.scope,
            reason=listing.reason,
            principal=principal,
            now=now,
        )
        if made.state == "open" and made.count == len(ids):
            return made
    return forget_list(
        listing.verb, wanted=wanted, scope=listing.scope, reason=listing.reason, principal=principal, now=now
    )


def listing_repeat(listing: Listing, *, principal: Principal, now: dt.datetime) -> Listing:
    """Return a new list for the same request, as of ``now``. Costs and raises as ``forget_list``."""
    wanted = ForgetFilter.from_json(listing.filter)
    return forget_list(
        listing.verb,
        query=listing.query or None,
        wanted=wanted,
        scope=listing.scope,
        reason=listing.reason,
        principal=principal,
        now=now,
    )
