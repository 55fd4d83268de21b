"""The error statuses of routes."""

from memory.api.schemas import Problem

# The meaning of each error status, for the OpenAPI document.
REFUSALS = {
    400: "The request is not JSON, contradicts itself, or names a topic that does not exist.",
    401: "The key is missing, unknown, revoked or expired.",
    403: "The role of the key does not cover this.",
    404: "What the request names does not exist, or lies outside the scope of the key.",
    409: "The request conflicts with the present state, or with another request in progress.",
    412: "The topic was changed since the version that If-Match names.",
    413: "The body is larger than the limit, which `detail` states.",
    422: "A member is missing, of the wrong type or out of range, or the Idempotency-Key belongs to another request.",
    429: "The key is rate limited; Retry-After states the seconds to wait.",
    500: "Internal server error; see the server log.",
    503: "The database or the embedder cannot answer at present; nothing has been written.",
}


def problems(*statuses: int) -> dict[int, type[Problem]]:
    """Return the replies of a route for these error ``statuses``, and for 500, with which every route can fail."""
    return dict.fromkeys((*statuses, 500), Problem)


READ = problems(401, 404, 422, 429, 503)
# For reads that need a role.
READ_BY_ROLE = problems(401, 403, 404, 422, 429, 503)
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 429, 503)
