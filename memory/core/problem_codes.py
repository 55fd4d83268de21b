"""The code of every problem: what programs and tests tell problems apart by, whatever the sentence says.

A code never changes once it has been released; the sentence that goes with it may. docs/errors.md is made of this list.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

URN_PREFIX = "urn:memstate:problem:"


class ProblemCode(StrEnum):
    """What is wrong, as one word with hyphens; ``description`` says the same in a line for the docs."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        """Make a member of its word and its description."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    @property
    def urn(self) -> str:
        """The code as the ``type`` of a problem document."""
        return URN_PREFIX + self.value

    # General: what a problem has that nobody gave a code of its own.
    REFUSED = "refused", "The request was refused."
    CONTRADICTORY_REQUEST = "contradictory-request", "Two parts of the request exclude each other."
    NOT_VISIBLE = "not-visible", "What the request names does not exist, or lies outside the scope of the key."
    CONFLICT = "conflict", "The request collides with the present state."
    INVALID_VALUE = "invalid-value", "A value is of the wrong type or out of range."
    NOT_ALLOWED = "not-allowed", "The caller may not do this."

    # Keys and roles.
    KEY_MISSING = "key-missing", "The request carries no key."
    KEY_UNKNOWN = "key-unknown", "The key of the request is not known."
    KEY_REVOKED = "key-revoked", "The key of the request was revoked."
    KEY_EXPIRED = "key-expired", "The key of the request has expired."
    KEY_REFUSED = "key-refused", "The key of the request opens nothing."
    ROLE_TOO_LOW = "role-too-low", "The role of the caller does not cover the request."
    NO_CONSOLE_ACCESS = "no-console-access", "The account may not use the console."
    FOREIGN_ORIGIN = "foreign-origin", "The request comes from a page of another site."
    TOO_MANY_REQUESTS = "too-many-requests", "The key has made as many requests as it may in this minute."
    KEY_NOT_FOUND = "key-not-found", "There is no such key to show or revoke."
    KEY_PREFIX_AMBIGUOUS = "key-prefix-ambiguous", "More than one key begins like this."
    KEY_ALREADY_MADE = "key-already-made", "The form was sent before, and its key was made then."
    KEY_ALREADY_REVOKED = "key-already-revoked", "The key was revoked before."
    INVALID_KEY_NAME = "invalid-key-name", "The name of a key is empty or too long."

    # Addresses and bodies.
    ADDRESS_NOT_FOUND = "address-not-found", "There is nothing at the address."
    METHOD_NOT_POSSIBLE = "method-not-possible", "The address does not take this method."
    MISSING_BODY = "missing-body", "The request has no body."
    BODY_IN_CHUNKS = "body-in-chunks", "The body was sent in chunks, without a Content-Length."
    BODY_TOO_LARGE = "body-too-large", "The body is larger than the limit."
    INVALID_JSON = "invalid-json", "The text is not JSON in UTF-8."
    JSON_TOO_DEEP = "json-too-deep", "The JSON nests too deep."
    NUMBER_NOT_FINITE = "number-not-finite", "A number is not finite."
    INVALID_CHARACTER = "invalid-character", "A text holds a NUL character or half of a surrogate pair."
    NOT_A_BATCH = "not-a-batch", "The body is no list of items."
    BATCH_TOO_LARGE = "batch-too-large", "The batch has too many items."
    INVALID_MEMBER = "invalid-member", "A member of the request is of the wrong type or out of range."
    MISSING_MEMBER = "missing-member", "A member of the request is missing."
    UNKNOWN_MEMBER = "unknown-member", "The request has a member that there is not."
    LIMIT_TOO_LARGE = "limit-too-large", "The page that was asked for is too large."
    INVALID_CURSOR = "invalid-cursor", "The cursor was not handed out for this list."
    INVALID_ID = "invalid-id", "This is no id."
    UNKNOWN_CHOICE = "unknown-choice", "A word is none of those that are possible."
    INVALID_DURATION = "invalid-duration", "This is no duration, or one out of range."
    INVALID_PERIOD = "invalid-period", "The period is empty, lies in the future, or is too long."
    INVALID_SCOPE = "invalid-scope", "This is no scope path."
    SCOPE_NOT_FOUND = "scope-not-found", "There is no such scope for the caller."
    TEXT_TOO_LONG = "text-too-long", "A text has too many characters."
    EMPTY_TEXT = "empty-text", "A text is empty."
    INVALID_PATTERN = "invalid-pattern", "The pattern cannot be read, or asks for what patterns may not hold."
    PATTERN_TOO_SLOW = "pattern-too-slow", "The pattern takes too long to match."
    INVALID_LOOKUP = "invalid-lookup", "The lookup cannot be read."
    INVALID_LOOKUP_VALUE = "invalid-lookup-value", "The value of a qualifier in a lookup cannot be read."
    UNKNOWN_LOOKUP_QUALIFIER = "unknown-lookup-qualifier", "There is no such qualifier in lookups."

    # Requests sent again.
    STILL_IN_PROGRESS = (
        "still-in-progress",
        "The first request with this Idempotency-Key is at work; sent again later, this one gets its reply.",
    )
    INVALID_IDEMPOTENCY_KEY = "invalid-idempotency-key", "The Idempotency-Key is empty or too long."
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused", "The Idempotency-Key came with another body before."
    ERASED_MEANWHILE = "erased-meanwhile", "What the request is about has been erased since."
    CHANGED_MEANWHILE = "changed-meanwhile", "What the request is about was changed in the meantime."

    # Topics.
    TOPIC_NOT_FOUND = "topic-not-found", "There is no such topic for the caller."
    FIELD_NOT_FOUND = "field-not-found", "The topic has no such field."
    TOPIC_EXISTS = "topic-exists", "There is a topic with this id already."
    TOPIC_GONE = "topic-gone", "The topic was released or merged into another."
    TOPIC_MERGED = "topic-merged", "The topic was merged into another, which holds what it said."
    ANOTHER_SCOPE = "another-scope", "What the request names lives in another scope than the request says."
    WRONG_STANDING = "wrong-standing", "Where the topic stands, this cannot be done with it."
    UNKNOWN_FIELD_TYPE = "unknown-field-type", "There is no such type of field."
    INVALID_FIELD_VALUE = "invalid-field-value", "The value of a field is not of its type."
    INVALID_CREATED_AT = "invalid-created-at", "The moment of creation lies in the future, or before what is there."
    INVALID_LAST_USED_AT = "invalid-last-used-at", "The time of the last use is in the future, or before the creation."
    TOO_MANY_FIELDS = "too-many-fields", "The topic would have too many fields."
    TOO_MANY_CATEGORIES = "too-many-categories", "The topic would have too many categories."
    LINK_TO_ITSELF = "link-to-itself", "A topic is not linked to itself."
    RESERVED_KIND = "reserved-kind", "The store keeps this kind of topic for itself, or for people."

    # Forgetting on command.
    NOTHING_NAMED = "nothing-named", "The request names nothing."
    TOO_MANY_TOPICS = "too-many-topics", "These are more topics than can be changed at once."
    TOO_MANY_NAMES = "too-many-names", "The request names too many persons or things."
    LIST_NOT_FOUND = "list-not-found", "There is no such list for the caller."
    LIST_EXECUTED = "list-executed", "The list was executed before."
    LIST_EXPIRED = "list-expired", "The list has expired."
    LIST_EMPTY = "list-empty", "The list is empty."
    LIST_AMBIGUOUS = "list-ambiguous", "The request of the list matches several things equally well."
    LIST_OUTDATED = "list-outdated", "Topics of the list changed after it was made."
    LIST_FOR_ANOTHER_VERB = "list-for-another-verb", "The list was made for the other verb."
    AMBIGUOUS_REQUEST = "ambiguous-request", "Several facts are equally near; `candidates` names them."
    UNKNOWN_TOKEN = "unknown-token", "This is no token of a candidate."
    TOKEN_EXPIRED = "token-expired", "The token of the candidate has expired."
    RECEIPT_NOT_FOUND = "receipt-not-found", "There is no such receipt for the caller."
    STORE_BUSY = "store-busy", "Others keep writing; nothing was done."
    WRONG_CONFIRMATION = "wrong-confirmation", "What was typed to confirm is not what was asked for."

    # Forget runs.
    RUN_NOT_FOUND = "run-not-found", "There is no such run for the caller."
    RUN_AT_WORK = "run-at-work", "Another run is at work in the same place."
    RUN_OUTDATED = "run-outdated", "The policy or a topic changed after the run was planned."
    RUN_OF_ANOTHER_MOMENT = "run-of-another-moment", "The run was judged for another moment than now."
    RUN_NOT_UNDOABLE = "run-not-undoable", "The run cannot be undone, or not here."
    WRONG_STATUS = "wrong-status", "What the request names has a status in which this cannot be done."
    PAUSED = "forgetting-paused", "Forgetting is paused there."
    ALREADY_PAUSED = "already-paused", "Forgetting is paused there already."
    NOT_PAUSED = "not-paused", "Forgetting is not paused there."
    UNKNOWN_EVENT = "unknown-event", "There is no such event, or nobody can raise it."
    TOO_MANY_MOMENTS = "too-many-moments", "These are more moments than can be projected at once."

    # Policies and rules.
    UNKNOWN_POLICY_VALUE = "unknown-policy-value", "There is no policy value of this name."
    INVALID_POLICY_VALUE = "invalid-policy-value", "A policy value is of the wrong type or out of range."
    POLICY_VALUES_CONTRADICT = "policy-values-contradict", "Two policy values exclude each other."
    POLICY_VALUE_FIXED = "policy-value-fixed", "The value belongs to the whole store; no policy can set it."
    POLICY_VALUE_NOT_SET = "policy-value-not-set", "The value is not set here, so it cannot be unset."
    INVALID_CRON = "invalid-cron", "The cron line cannot be read, or never fires."
    UNKNOWN_PRESET = "unknown-preset", "There is no such preset."
    UNKNOWN_RULE_PRESET = "unknown-rule-preset", "There is no such set of rules."
    UNKNOWN_RULE = "unknown-rule", "No rule of this name is set here."
    INVALID_RULE = "invalid-rule", "A rule cannot be read."
    TOO_MANY_RULES = "too-many-rules", "The policy has too many rules."
    RULE_NOT_STABLE = "rule-not-stable", "With this rule a second run in a row would change something."
    INVALID_CONDITION = "invalid-condition", "A condition has the wrong form, or is too large."
    INVALID_CONDITION_VALUE = "invalid-condition-value", "The value that a condition compares with does not fit."
    UNKNOWN_CONDITION_FIELD = "unknown-condition-field", "There is no such field in conditions."
    UNKNOWN_OPERATOR = "unknown-operator", "The field of a condition cannot be compared in this way."
    POLICY_VERSION_NOT_FOUND = "policy-version-not-found", "The policy has no such version."
    POLICY_CHANGED = "policy-changed", "Somebody else saved the policy in the meantime."
    REASON_MISSING = "reason-missing", "The change needs a reason."
    DRAFT_REFUSED = "draft-refused", "The draft of a policy cannot be tried as it is."
    DRAFT_UNREADABLE = "draft-unreadable", "The draft of a policy that came with the request cannot be read."

    # Duplicates.
    PAIR_NOT_FOUND = "pair-not-found", "There is no such pair for the caller."
    PAIR_DECIDED = "pair-decided", "The pair was decided before."
    PAIR_OUTDATED = "pair-outdated", "One of the two has changed or left since they were compared."
    PAIR_DIFFERS = "pair-differs", "The two differ in something that matters, so the pair is decided by itself."
    TOO_MANY_PAIRS = "too-many-pairs", "These are more pairs than can be merged at once."
    TOPICS_NOT_MERGEABLE = "topics-not-mergeable", "These two topics cannot be merged."

    # The assistant, studies and extractions.
    CONVERSATION_NOT_FOUND = "conversation-not-found", "There is no such conversation of the caller."
    MESSAGE_NOT_FOUND = "message-not-found", "The conversation has no such message."
    LAST_MESSAGE_NOT_OF_USER = "last-message-not-of-user", "The last message is not the user's."
    ASSISTANT_AT_WORK = "assistant-at-work", "The assistant is still at the last message of the conversation."
    MESSAGE_GIVEN_UP = "message-given-up", "The message was given up because it took too long."
    MESSAGE_BROKEN_OFF = "message-broken-off", "The message was broken off after something was written."
    PREVIEW_OUTDATED = "preview-outdated", "What would be done is not what was looked at before."
    TOO_MANY_CONVERSATIONS = "too-many-conversations", "The assistant is at as many messages as it can answer at once."
    STUDY_NOT_FOUND = "study-not-found", "There is no such study for the caller."
    TOO_MANY_STUDIES = "too-many-studies", "As many long texts are being studied as may be at once."
    TOPIC_NOT_OF_STUDY = "topic-not-of-study", "The topic is none that this step of a study may change."
    STEP_LIMIT = "step-limit", "A step of a study has done as much as it may."
    AUTHOR_NOT_ALLOWED = "author-not-allowed", "In whose name the work was begun may not do it any more."
    EXTRACTION_NOT_FOUND = "extraction-not-found", "There is no such extraction for the caller."
    TOOL_NOT_FOUND = "tool-not-found", "There is no such tool."
    RESOURCE_NOT_FOUND = "resource-not-found", "There is no such resource."

    # The language model and the embedder.
    MODEL_NOT_CONFIGURED = "model-not-configured", "No language model is configured."
    MODEL_UNKNOWN = "model-unknown", "The endpoint does not know the language model."
    MODEL_TIMEOUT = "model-timeout", "The language model did not answer in time."
    MODEL_RATE_LIMITED = "model-rate-limited", "The language model asks to wait."
    MODEL_CIRCUIT_OPEN = "model-circuit-open", "The language model failed lately and is not asked for a while."
    MODEL_UNAVAILABLE = "model-unavailable", "The language model cannot be asked."
    MODEL_UNUSABLE = "model-unusable", "The language model gave no answer that can be used."
    EMBEDDER_UNAVAILABLE = "embedder-unavailable", "The embedder could not be reached or gave no usable answer."
    WRONG_DIMENSION = "wrong-dimension", "The embedder makes vectors of another length than the store holds."

    # Schedules and jobs.
    SCHEDULE_NOT_FOUND = "schedule-not-found", "There is no such schedule."
    SCHEDULE_OF_POLICY = "schedule-of-policy", "The schedule follows its policy and is changed there."
    SCHEDULE_OFF = "schedule-off", "The mode of the policy is off, so its run would do nothing."
    JOB_NOT_FOUND = "job-not-found", "There is no such job."
    JOB_QUEUED = "job-queued", "The job waits in the queue already."

    # Exports and imports.
    UPLOAD_GONE = "upload-gone", "The uploaded file is not there any more."
    UPLOAD_REFUSED = "upload-refused", "The upload could not be taken."
    TOO_MANY_DOWNLOADS = "too-many-downloads", "As many files are being downloaded as may be at once."
    FILE_UNREADABLE = "file-unreadable", "The file cannot be read."
    FILE_NOT_WRITABLE = "file-not-writable", "The file cannot be written."
    FILE_EXISTS = "file-exists", "The file is there already."
    FILE_IN_USE = "file-in-use", "Somebody else writes the file at the moment."
    FILE_CHANGED = "file-changed", "The file was changed while it was read."
    FILE_NOT_AN_EXPORT = "file-not-an-export", "The file is no export, or one of something else."
    FILE_NOT_JSON = "file-not-json", "The file is not whole JSON in UTF-8."
    NEWER_FORMAT = "newer-format", "The file was written by a newer MemState."
    LINE_DAMAGED = "line-damaged", "A line of the file is damaged, missing, or at a wrong place."
    LINE_OUTSIDE_SCOPE = "line-outside-scope", "A line of the file belongs outside the scope of the caller."
    IMPORT_NOT_FOUND = "import-not-found", "There is no such import for the caller."
    IMPORT_AT_WORK = "import-at-work", "The same file is being imported already."
    IMPORT_REFUSED = "import-refused", "The file was looked at and cannot be brought; its problems are named."
    IMPORT_FAILED = "import-failed", "The import came to a stop before its end."
    DEMO_LOADED = "demo-loaded", "The demo is in the store already."

    # The terminal.
    INVALID_ARGUMENT = "invalid-argument", "An argument of the command cannot be used."
    ITEMS_REFUSED = "items-refused", "Some of the items were refused."
    WORK_LEFT = "work-left", "The command left something undone; run it again."
    GENERATED_FILE_OUTDATED = "generated-file-outdated", "A file that is made of the code differs from it."
    ERASURE_NOT_PROVEN = "erasure-not-proven", "Something that was purged is left, or a receipt is not as it was."

    # The server itself.
    DATABASE_BUSY = "database-busy", "Others are writing to the same topics."
    DATABASE_SLOW = "database-slow", "The database took longer than a request may take."
    DATABASE_UNAVAILABLE = "database-unavailable", "The database cannot be reached."
    TEXT_NOT_INDEXABLE = "text-not-indexable", "A text is too large for the database to index."
    INTERNAL_ERROR = "internal-error", "Something went wrong in the server; its log says what."


# The code of a problem with the language model, by the kind that is counted.
MODEL_CODES = {
    "not_configured": ProblemCode.MODEL_NOT_CONFIGURED,
    "absent": ProblemCode.MODEL_UNKNOWN,
    "timeout": ProblemCode.MODEL_TIMEOUT,
    "rate_limited": ProblemCode.MODEL_RATE_LIMITED,
    "circuit_open": ProblemCode.MODEL_CIRCUIT_OPEN,
}

# The code of a request body that does not fit, by the kind of pydantic's finding.
_VALIDATION_CODES = {"missing": ProblemCode.MISSING_MEMBER, "extra_forbidden": ProblemCode.UNKNOWN_MEMBER}


def validation_code(findings: Sequence[Mapping[str, Any]]) -> ProblemCode:
    """Return the code for pydantic's findings: a particular one only where all of them are of the same kind."""
    codes = {_VALIDATION_CODES.get(str(finding["type"]), ProblemCode.INVALID_MEMBER) for finding in findings}
    return codes.pop() if len(codes) == 1 else ProblemCode.INVALID_MEMBER
