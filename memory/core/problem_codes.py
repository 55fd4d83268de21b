"""The codes of all problems. A released code never changes; its sentence may. A code says what a program can
do about the problem; ``member`` of the problem says where it is. docs/errors.md lists the codes."""

from enum import StrEnum
from typing import Self

URN_PREFIX = "urn:memstate:problem:"


class ProblemCode(StrEnum):
    """The codes. A member is a text with hyphens. Its ``description`` is the line in the docs."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    @property
    def urn(self) -> str:
        """The code in the form of the member ``type`` of a problem document."""
        return URN_PREFIX + self.value

    # The request.
    INVALID_JSON = "invalid-json", "The text is not JSON in UTF-8, or is nested too deeply."
    INVALID_BODY = ("invalid-body", "The body is missing, incomplete, sent with chunked encoding, or not a list.")
    BODY_TOO_LARGE = "body-too-large", "The body is larger than the limit."
    INVALID_MEMBER = ("invalid-member", "A value is of the wrong type, malformed or out of range.")
    MISSING_MEMBER = "missing-member", "A required value is missing or empty, or the request names nothing."
    UNKNOWN_MEMBER = "unknown-member", "The request has a member that does not exist."
    TOO_LARGE = "too-large", "A text is too long, or there are more things than one request or one topic may have."
    CONTRADICTORY_REQUEST = "contradictory-request", "Two parts of the request contradict each other."
    AMBIGUOUS_REQUEST = "ambiguous-request", "Several things match equally well; `candidates` lists them, if given."
    INVALID_SCOPE = "invalid-scope", "The scope path is malformed."
    INVALID_PERIOD = "invalid-period", "The period is empty, lies in the future, or is too long."
    INVALID_CURSOR = "invalid-cursor", "The cursor does not belong to this list."
    INVALID_PATTERN = "invalid-pattern", "The pattern is malformed or too slow, or uses what patterns may not use."
    INVALID_LOOKUP = "invalid-lookup", "The lookup is malformed, or has an unknown qualifier or a malformed value."
    INVALID_POLICY = "invalid-policy", "A value of a policy is unknown, invalid, or contradicts another."
    INVALID_RULE = ("invalid-rule", "A rule is malformed, or would change the same topics again in a second run.")
    INVALID_FILE = "invalid-file", "The file cannot be read, or cannot be imported as it is."
    FILE_NOT_WRITABLE = "file-not-writable", "The file cannot be written."

    # Keys and roles.
    KEY_MISSING = "key-missing", "The request carries no key."
    KEY_UNKNOWN = "key-unknown", "The key of the request is not known."
    KEY_REVOKED = "key-revoked", "The key of the request was revoked."
    KEY_EXPIRED = "key-expired", "The key of the request has expired."
    ROLE_TOO_LOW = "role-too-low", "The role of the caller does not cover the request."
    NOT_ALLOWED = "not-allowed", "The caller may not do this."
    TOO_MANY_REQUESTS = "too-many-requests", "The caller, or all callers together, asked for too much; retry later."
    AGENT_FORGET_LIMIT = "agent-forget-limit", "The key would release more topics of its scope in a day than it may."

    # The present state.
    ADDRESS_NOT_FOUND = "address-not-found", "The address does not exist."
    METHOD_NOT_POSSIBLE = "method-not-possible", "The address does not support this method."
    NOT_FOUND = "not-found", "What the request names does not exist, or lies outside the scope of the key."
    ALREADY_EXISTS = "already-exists", "What the request would create exists already."
    CONFLICT = "conflict", "The state of what the request names does not allow this."
    CHANGED_MEANWHILE = "changed-meanwhile", "What the request names was changed after it was read, planned or listed."
    EXPIRED = "expired", "The token, list or link has expired or was replaced."
    BUSY = "busy", "Other work on the same things is in progress; nothing was done. Retry later."
    TOPIC_GONE = "topic-gone", "The topic was released or merged into another."
    ERASED_MEANWHILE = "erased-meanwhile", "What the request names has been erased in the meantime."
    FORGETTING_PAUSED = "forgetting-paused", "Forgetting is paused there."
    STILL_IN_PROGRESS = (
        "still-in-progress",
        "The first request with this Idempotency-Key is still being processed; retry later to get its reply.",
    )
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused", "The Idempotency-Key was used before with a different body."

    # The language model and the embedder.
    MODEL_NOT_CONFIGURED = "model-not-configured", "No language model is configured."
    MODEL_TIMEOUT = "model-timeout", "The language model did not answer in time."
    MODEL_RATE_LIMITED = "model-rate-limited", "The language model endpoint limits its rate; retry later."
    MODEL_UNAVAILABLE = "model-unavailable", "The language model cannot be reached, or gave no usable answer."
    EMBEDDER_UNAVAILABLE = "embedder-unavailable", "The embedder could not be reached or gave no usable answer."

    # The server.
    STORE_ELSEWHERE = "store-elsewhere", "The store is on another cluster."
    STORE_BEHIND = "store-behind", "The store is being migrated to a new release; retry soon."
    DATABASE_SLOW = "database-slow", "The database took longer than a request may take."
    DATABASE_UNAVAILABLE = "database-unavailable", "The database cannot be reached."
    DISK_FULL = "disk-full", "The disk that holds the database is full."
    INTERNAL_ERROR = "internal-error", "An unexpected error occurred; the log of the server has the details."

    # The terminal.
    ITEMS_REFUSED = "items-refused", "Some of the items were refused."
    WORK_LEFT = "work-left", "The command did not finish; run it again."
    PROGRAM_FAILED = "program-failed", "A program of PostgreSQL ended with an error."
    GENERATED_FILE_OUTDATED = "generated-file-outdated", "A generated file is out of date."
    ERASURE_NOT_PROVEN = "erasure-not-proven", "Purged data is left in the store, or a receipt was altered."


# The code of a problem with the language model, by the ``kind`` of the failure; else MODEL_UNAVAILABLE.
MODEL_CODES = {
    "not_configured": ProblemCode.MODEL_NOT_CONFIGURED,
    "timeout": ProblemCode.MODEL_TIMEOUT,
    "rate_limited": ProblemCode.MODEL_RATE_LIMITED,
}
