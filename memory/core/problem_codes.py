"""The codes of all problems. A released code never changes; its sentence may. docs/errors.md is generated from here."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

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

    # General codes, for problems without a code of their own.
    REFUSED = "refused", "The request was refused."
    CONTRADICTORY_REQUEST = "contradictory-request", "Two parts of the request contradict each other."
    NOT_VISIBLE = "not-visible", "What the request names does not exist, or lies outside the scope of the key."
    CONFLICT = "conflict", "The request conflicts with the present state."
    INVALID_VALUE = "invalid-value", "A value is of the wrong type or out of range."
    NOT_ALLOWED = "not-allowed", "The caller may not do this."

    # Keys and roles.
    KEY_MISSING = "key-missing", "The request carries no key."
    KEY_UNKNOWN = "key-unknown", "The key of the request is not known."
    KEY_REVOKED = "key-revoked", "The key of the request was revoked."
    KEY_EXPIRED = "key-expired", "The key of the request has expired."
    KEY_REFUSED = "key-refused", "The key of the request is not valid."
    ROLE_TOO_LOW = "role-too-low", "The role of the caller does not cover the request."
    NO_CONSOLE_ACCESS = "no-console-access", "The account may not use the console."
    FOREIGN_ORIGIN = "foreign-origin", "The request comes from a page of another site."
    TOO_MANY_REQUESTS = "too-many-requests", "The key has reached its limit of requests per minute."
    SIGN_IN_BUSY = "sign-in-busy", "Other sign-ins are being checked; retry after some seconds."
    KEY_NOT_FOUND = "key-not-found", "The key does not exist."
    KEY_PREFIX_AMBIGUOUS = "key-prefix-ambiguous", "More than one key begins with this prefix."
    KEY_ALREADY_MADE = "key-already-made", "The form was already sent and created its key."
    KEY_ALREADY_REVOKED = "key-already-revoked", "The key is already revoked."
    INVALID_KEY_NAME = "invalid-key-name", "The name of a key is empty or too long."
    MAY_FORGET_NEEDS_AGENT = "may-forget-needs-agent", "Only a key with the role agent can have may_forget."
    PERSON_NOT_FOUND = "person-not-found", "The person does not exist."
    PERSON_EXISTS = "person-exists", "Another person has this name."
    INVALID_PERSON_NAME = "invalid-person-name", "The name of a person is empty, too long, reserved or malformed."
    OWN_ACCOUNT = "own-account", "People cannot change their own role, nor disable their own account."
    INSTALLATION_ADMINISTRATOR_NEEDED = (
        "installation-administrator-needed",
        "Only an administrator of the installation may change this account.",
    )
    LAST_ADMINISTRATOR = "last-administrator", "The last enabled administrator cannot be disabled or demoted."
    SIGN_IN_LINK_INVALID = "sign-in-link-invalid", "The sign-in link was used, has expired, or was replaced."
    AGENT_FORGET_LIMIT = "agent-forget-limit", "The key would release more topics of its scope in a day than it may."

    # Addresses and bodies.
    ADDRESS_NOT_FOUND = "address-not-found", "The address does not exist."
    METHOD_NOT_POSSIBLE = "method-not-possible", "The address does not support this method."
    MISSING_BODY = "missing-body", "The request has no body."
    BODY_IN_CHUNKS = "body-in-chunks", "The body was sent in chunks, without a Content-Length."
    BODY_TOO_LARGE = "body-too-large", "The body is larger than the limit."
    INVALID_JSON = "invalid-json", "The text is not JSON in UTF-8."
    JSON_TOO_DEEP = "json-too-deep", "The JSON is nested too deeply."
    NUMBER_NOT_FINITE = "number-not-finite", "A number is not finite."
    INVALID_CHARACTER = "invalid-character", "A text holds a NUL character or half of a surrogate pair."
    NOT_A_BATCH = "not-a-batch", "The body is not a list of items."
    BATCH_TOO_LARGE = "batch-too-large", "The batch has too many items."
    INVALID_MEMBER = "invalid-member", "A member of the request is of the wrong type or out of range."
    MISSING_MEMBER = "missing-member", "A member of the request is missing."
    UNKNOWN_MEMBER = "unknown-member", "The request has a member that does not exist."
    LIMIT_TOO_LARGE = "limit-too-large", "The requested page is too large."
    INVALID_CURSOR = "invalid-cursor", "The cursor does not belong to this list."
    INVALID_ID = "invalid-id", "The id is malformed."
    UNKNOWN_CHOICE = "unknown-choice", "A value is not one of the possible choices."
    INVALID_DURATION = "invalid-duration", "The duration is malformed or out of range."
    INVALID_PERIOD = "invalid-period", "The period is empty, lies in the future, or is too long."
    INVALID_SCOPE = "invalid-scope", "The scope path is malformed."
    SCOPE_NOT_FOUND = "scope-not-found", "The scope does not exist, or lies outside the scope of the key."
    TEXT_TOO_LONG = "text-too-long", "A text has too many characters."
    EMPTY_TEXT = "empty-text", "A text is empty."
    INVALID_PATTERN = "invalid-pattern", "The pattern is malformed, or uses a feature that patterns may not use."
    PATTERN_TOO_SLOW = "pattern-too-slow", "The pattern takes too long to match."
    INVALID_LOOKUP = "invalid-lookup", "The lookup is malformed."
    INVALID_LOOKUP_VALUE = "invalid-lookup-value", "The value of a qualifier in a lookup is malformed."
    UNKNOWN_LOOKUP_QUALIFIER = "unknown-lookup-qualifier", "The qualifier does not exist in lookups."

    # Repeated requests.
    STILL_IN_PROGRESS = (
        "still-in-progress",
        "The first request with this Idempotency-Key is still being processed; retry later to get its reply.",
    )
    INVALID_IDEMPOTENCY_KEY = "invalid-idempotency-key", "The Idempotency-Key is empty or too long."
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused", "The Idempotency-Key was used before with a different body."
    ERASED_MEANWHILE = "erased-meanwhile", "What the request names has been erased in the meantime."
    CHANGED_MEANWHILE = "changed-meanwhile", "What the request names was changed in the meantime."

    # Topics.
    TOPIC_NOT_FOUND = "topic-not-found", "The topic does not exist, or lies outside the scope of the key."
    FIELD_NOT_FOUND = "field-not-found", "The field does not exist in the topic."
    TOPIC_EXISTS = "topic-exists", "A topic with this id already exists."
    TOPIC_GONE = "topic-gone", "The topic was released or merged into another."
    TOPIC_MERGED = "topic-merged", "The topic was merged into another, which holds its content."
    ANOTHER_SCOPE = "another-scope", "The request names a topic outside the scope that it states."
    WRONG_STANDING = "wrong-standing", "The state of the topic does not allow this."
    UNKNOWN_FIELD_TYPE = "unknown-field-type", "The field type does not exist."
    INVALID_FIELD_VALUE = "invalid-field-value", "The value of a field is not of its type."
    INVALID_CREATED_AT = (
        "invalid-created-at",
        "The time of creation lies in the future, or before the last change of the topic.",
    )
    INVALID_LAST_USED_AT = "invalid-last-used-at", "The time of the last use is in the future, or before the creation."
    TOO_MANY_FIELDS = "too-many-fields", "The topic would have too many fields."
    TOO_MANY_CATEGORIES = "too-many-categories", "The topic would have too many categories."
    RESERVED_KIND = "reserved-kind", "This kind of topic is reserved for the store or for people."

    # Forgetting on command.
    NOTHING_NAMED = "nothing-named", "The request names nothing."
    TOO_MANY_TOPICS = "too-many-topics", "The request names more topics than can be changed at once."
    TOO_MANY_NAMES = "too-many-names", "The request names too many people or things."
    LIST_NOT_FOUND = "list-not-found", "The list does not exist, or lies outside the scope of the key."
    LIST_EXECUTED = "list-executed", "The list was already executed."
    LIST_EXPIRED = "list-expired", "The list has expired."
    LIST_EMPTY = "list-empty", "The list is empty."
    LIST_AMBIGUOUS = "list-ambiguous", "The request of the list matches several things equally well."
    LIST_OUTDATED = "list-outdated", "Topics of the list changed after it was made."
    LIST_FOR_ANOTHER_VERB = "list-for-another-verb", "The list was made for another action (release or purge)."
    AMBIGUOUS_REQUEST = "ambiguous-request", "Several facts match equally well; `candidates` lists them."
    UNKNOWN_TOKEN = "unknown-token", "The token does not belong to a candidate."
    TOKEN_EXPIRED = "token-expired", "The token of the candidate has expired."
    RECEIPT_NOT_FOUND = "receipt-not-found", "The receipt does not exist, or lies outside the scope of the key."
    STORE_BUSY = "store-busy", "Other requests keep writing to the same topics; nothing was done."
    WRONG_CONFIRMATION = "wrong-confirmation", "The typed confirmation does not match."

    RECALL_NOT_FOUND = "recall-not-found", "The recall does not exist, or lies outside the scope of the caller."

    # Forget runs.
    RUN_NOT_FOUND = "run-not-found", "The run does not exist, or lies outside the scope of the key."
    RUN_AT_WORK = "run-at-work", "Another run is in progress in the same scope."
    RUN_OUTDATED = "run-outdated", "The policy or a topic changed after the run was planned."
    NOTHING_TO_ROLL_BACK = "nothing-to-roll-back", "No policy has changed since the previous run."
    RUN_OF_ANOTHER_MOMENT = "run-of-another-moment", "The run was planned for another time than now."
    RUN_NOT_UNDOABLE = "run-not-undoable", "The run cannot be undone, or not from here."
    WRONG_STATUS = "wrong-status", "The status of what the request names does not allow this."
    FORGETTING_PAUSED = "forgetting-paused", "Forgetting is paused there."
    ALREADY_PAUSED = "already-paused", "Forgetting is already paused there."
    NOT_PAUSED = "not-paused", "Forgetting is not paused there."
    UNKNOWN_EVENT = "unknown-event", "The event does not exist, or cannot be raised by hand."
    TOO_MANY_MOMENTS = "too-many-moments", "The request asks for more times than can be projected at once."

    # Policies and rules.
    UNKNOWN_POLICY_VALUE = "unknown-policy-value", "The policy value does not exist."
    INVALID_POLICY_VALUE = "invalid-policy-value", "A policy value is of the wrong type or out of range."
    POLICY_VALUES_CONTRADICT = "policy-values-contradict", "Two policy values contradict each other."
    POLICY_VALUE_FIXED = "policy-value-fixed", "The value belongs to the whole store; no policy can set it."
    POLICY_VALUE_NOT_SET = "policy-value-not-set", "The value is not set here, so it cannot be unset."
    INVALID_CRON = "invalid-cron", "The cron line is malformed, or never fires."
    UNKNOWN_PRESET = "unknown-preset", "The preset does not exist."
    UNKNOWN_RULE_PRESET = "unknown-rule-preset", "The set of rules does not exist."
    UNKNOWN_RULE = "unknown-rule", "No rule of this name is set here."
    INVALID_RULE = "invalid-rule", "A rule is malformed."
    TOO_MANY_RULES = "too-many-rules", "The policy has too many rules."
    RULE_NOT_STABLE = "rule-not-stable", "With this rule, a second run right after the first would change something."
    INVALID_CONDITION = "invalid-condition", "A condition has the wrong form, or is too large."
    INVALID_CONDITION_VALUE = (
        "invalid-condition-value",
        "The value that a condition compares with is of the wrong type or out of range.",
    )
    UNKNOWN_CONDITION_FIELD = "unknown-condition-field", "The field does not exist in conditions."
    UNKNOWN_OPERATOR = "unknown-operator", "The operator does not apply to the field of the condition."
    POLICY_VERSION_NOT_FOUND = "policy-version-not-found", "The version of the policy does not exist."
    POLICY_CHANGED = "policy-changed", "Another user saved the policy in the meantime."
    REASON_MISSING = "reason-missing", "The change needs a reason."
    DRAFT_REFUSED = "draft-refused", "The draft of a policy cannot be tried as it is."
    DRAFT_UNREADABLE = "draft-unreadable", "The draft of a policy in the request is malformed."

    # Duplicates.
    PAIR_NOT_FOUND = "pair-not-found", "The pair does not exist, or lies outside the scope of the key."
    PAIR_DECIDED = "pair-decided", "The pair was already decided."
    PAIR_OUTDATED = "pair-outdated", "One of the two topics was changed or removed after they were compared."
    PAIR_DIFFERS = (
        "pair-differs",
        "The two topics differ in something important, so each pair like this needs its own decision.",
    )
    TOO_MANY_PAIRS = "too-many-pairs", "The request names more pairs than can be merged at once."
    TOPICS_NOT_MERGEABLE = "topics-not-mergeable", "These two topics cannot be merged."

    # The assistant, studies and extractions.
    CONVERSATION_NOT_FOUND = "conversation-not-found", "The conversation does not exist, or belongs to another caller."
    MESSAGE_NOT_FOUND = "message-not-found", "The message does not exist in the conversation."
    LAST_MESSAGE_NOT_OF_USER = "last-message-not-of-user", "The last message of the conversation is not from the user."
    ASSISTANT_AT_WORK = "assistant-at-work", "The assistant is still answering the last message of the conversation."
    MESSAGE_GIVEN_UP = "message-given-up", "The message was abandoned because it took too long."
    MESSAGE_BROKEN_OFF = "message-broken-off", "The message was interrupted after something was written."
    PREVIEW_OUTDATED = "preview-outdated", "The effect of the request differs from its preview."
    TOO_MANY_CONVERSATIONS = (
        "too-many-conversations",
        "The assistant is already answering the largest number of messages it can answer at once.",
    )
    STUDY_NOT_FOUND = "study-not-found", "The study does not exist, or lies outside the scope of the key."
    TOO_MANY_STUDIES = "too-many-studies", "The largest number of studies is already in progress."
    TOPIC_NOT_OF_STUDY = "topic-not-of-study", "This step of a study may not change the topic."
    STEP_LIMIT = "step-limit", "The step of a study has reached its limit."
    AUTHOR_NOT_ALLOWED = "author-not-allowed", "The key or account that started the job may no longer write."
    EXTRACTION_NOT_FOUND = (
        "extraction-not-found",
        "The extraction does not exist, or lies outside the scope of the key.",
    )
    TOOL_NOT_FOUND = "tool-not-found", "The tool does not exist."
    RESOURCE_NOT_FOUND = "resource-not-found", "The resource does not exist."

    # The language model and the embedder.
    MODEL_NOT_CONFIGURED = "model-not-configured", "No language model is configured."
    MODEL_UNKNOWN = "model-unknown", "The endpoint does not know the language model."
    MODEL_TIMEOUT = "model-timeout", "The language model did not answer in time."
    MODEL_RATE_LIMITED = "model-rate-limited", "The language model endpoint limits its rate; retry later."
    MODEL_CIRCUIT_OPEN = (
        "model-circuit-open",
        "The circuit breaker is open after recent failures; the language model is not called for a while.",
    )
    MODEL_UNAVAILABLE = "model-unavailable", "The language model cannot be reached."
    MODEL_UNUSABLE = "model-unusable", "The language model gave no usable answer."
    EMBEDDER_UNAVAILABLE = "embedder-unavailable", "The embedder could not be reached or gave no usable answer."
    EMBEDDING_TIME_USED = "embedding-time-used", "Embedding has used the processor time of the key."
    WRONG_DIMENSION = "wrong-dimension", "The vectors of the embedder differ in length from those of the store."

    # Schedules and jobs.
    SCHEDULE_NOT_FOUND = "schedule-not-found", "The schedule does not exist."
    SCHEDULE_OF_POLICY = "schedule-of-policy", "The schedule belongs to a policy; change it there."
    SCHEDULE_OFF = "schedule-off", "The mode of the policy is off, so its run would do nothing."
    JOB_NOT_FOUND = "job-not-found", "The job does not exist."
    JOB_QUEUED = "job-queued", "The job is already in the queue."

    # Notifications.
    TARGET_NOT_FOUND = "target-not-found", "The target of notifications does not exist."
    TARGET_ALREADY_ADDED = "target-already-added", "The target of notifications has already been added."
    INVALID_TARGET = "invalid-target", "The address or the values of a target of notifications are invalid."
    PRIVATE_ADDRESS = "private-address", "The address of a webhook is not public."
    MAIL_NOT_CONFIGURED = "mail-not-configured", "No mail server is configured."

    # Exports and imports.
    UPLOAD_GONE = "upload-gone", "The uploaded file no longer exists."
    UPLOAD_REFUSED = "upload-refused", "The upload was refused."
    TOO_MANY_DOWNLOADS = "too-many-downloads", "The largest number of downloads is already in progress."
    FILE_UNREADABLE = "file-unreadable", "The file cannot be read."
    FILE_NOT_WRITABLE = "file-not-writable", "The file cannot be written."
    FILE_EXISTS = "file-exists", "The file already exists."
    FILE_IN_USE = "file-in-use", "Another process is writing the file."
    FILE_CHANGED = "file-changed", "The file changed while it was being read."
    FILE_NOT_AN_EXPORT = "file-not-an-export", "The file is not an export of MemState."
    FILE_NOT_JSON = "file-not-json", "The file is not complete JSON in UTF-8."
    NEWER_FORMAT = "newer-format", "The file was written by a newer MemState."
    LINE_DAMAGED = "line-damaged", "A line of the file is damaged, missing or out of order."
    LINE_OUTSIDE_SCOPE = "line-outside-scope", "A line of the file lies outside the scope of the key."
    IMPORT_NOT_FOUND = "import-not-found", "The import does not exist, or belongs to another caller."
    IMPORT_AT_WORK = "import-at-work", "The same file is already being imported."
    IMPORT_REFUSED = "import-refused", "The file was checked and cannot be imported; its problems are listed."
    IMPORT_FAILED = "import-failed", "The import failed before its end."
    DEMO_LOADED = "demo-loaded", "The demo is already loaded."

    # Stores.
    STORE_NOT_FOUND = "store-not-found", "The store does not exist."
    STORE_EXISTS = "store-exists", "A store has this name already."
    INVALID_STORE_NAME = "invalid-store-name", "The name of a store has characters that it must not have."
    STORE_IS_MAIN = "store-is-main", "The store “main” cannot be dropped."
    STORE_NOT_ALLOWED = "store-not-allowed", "Only a key of the installation, made in main, may name another store."
    NO_CLUSTER = "no-cluster", "The database is not the coordinator of a Citus cluster."
    NODE_NOT_FOUND = "node-not-found", "The cluster has no such node for stores."
    STORE_NOT_MOVABLE = "store-not-movable", "The store cannot be moved as things are; nothing was done."
    STORE_NOT_MOVED = "store-not-moved", "The move failed or took too long; the store stays where it was."
    STORE_ELSEWHERE = "store-elsewhere", "The store is on another cluster."
    STORE_BEHIND = "store-behind", "The store is being migrated to a new release; retry soon."

    # The terminal.
    INVALID_ARGUMENT = "invalid-argument", "An argument of the command is invalid."
    ITEMS_REFUSED = "items-refused", "Some of the items were refused."
    WORK_LEFT = "work-left", "The command did not finish; run it again."
    STORE_NOT_EMPTY = "store-not-empty", "The database already holds a store."
    PROGRAM_FAILED = "program-failed", "A program of PostgreSQL ended with an error."
    GENERATED_FILE_OUTDATED = "generated-file-outdated", "A generated file is out of date."
    ERASURE_NOT_PROVEN = "erasure-not-proven", "Purged data is left in the store, or a receipt was altered."

    # The server itself.
    DATABASE_BUSY = "database-busy", "Other requests are writing to the same topics."
    DATABASE_SLOW = "database-slow", "The database took longer than a request may take."
    DISK_FULL = "disk-full", "The disk that holds the database is full."
    DATABASE_UNAVAILABLE = "database-unavailable", "The database cannot be reached."
    BODY_INCOMPLETE = "body-incomplete", "The body did not arrive completely, or too slowly."
    TEXT_NOT_INDEXABLE = "text-not-indexable", "A text is too large for the database to index."
    INTERNAL_ERROR = "internal-error", "An unexpected error occurred; the log of the server has the details."


# The code of a problem with the language model, by the ``kind`` of the failure.
MODEL_CODES = {
    "not_configured": ProblemCode.MODEL_NOT_CONFIGURED,
    "absent": ProblemCode.MODEL_UNKNOWN,
    "timeout": ProblemCode.MODEL_TIMEOUT,
    "rate_limited": ProblemCode.MODEL_RATE_LIMITED,
    "circuit_open": ProblemCode.MODEL_CIRCUIT_OPEN,
}

# The code of an invalid request body, by the type of pydantic's error.
_VALIDATION_CODES = {"missing": ProblemCode.MISSING_MEMBER, "extra_forbidden": ProblemCode.UNKNOWN_MEMBER}


def validation_code(findings: Sequence[Mapping[str, Any]]) -> ProblemCode:
    """Return the code for pydantic's errors. The code is specific only if all errors have the same type."""
    codes = {_VALIDATION_CODES.get(str(finding["type"]), ProblemCode.INVALID_MEMBER) for finding in findings}
    return codes.pop() if len(codes) == 1 else ProblemCode.INVALID_MEMBER
