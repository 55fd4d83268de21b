"""From one list to the next: some of its topics, or the same request once more."""

import datetime as dt
import uuid
from collections.abc import Sequence

from memory.access.principal import Principal
from memory.erasure.filters import ForgetFilter
from memory.erasure.forget_list_create import forget_list
from memory.erasure.forget_lists import Listing


def listing_narrow(listing: Listing, ids: Sequence[uuid.UUID], *, principal: Principal, now: dt.datetime) -> Listing:
    """Return a new list of those topics of ``listing`` that somebody has picked.

    The request is asked of these alone, so that a topic that says more than what is meant keeps the rest. If that still
    does not decide, whole topics are listed. Costs and raises what ``forget_list`` does, twice at most.
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
    """Return a new list for the same request, of the store as it is at ``now``. As ``forget_list``."""
    wanted = ForgetFilter.of(listing.filter)
    return forget_list(
        listing.verb,
        query=listing.query or None,
        wanted=wanted,
        scope=listing.scope,
        reason=listing.reason,
        principal=principal,
        now=now,
    )
