"""The words for actions of the journal, as pages show them and filters accept them."""

# Actions whose words differ from their names.
_WORDS = {
    "ingest_new_topic": "Created",
    "ingest_extend_topic": "Extended",
    "ingest_version_field": "Updated",
    "schedule_run": "Job run",
    "schedule_changed": "Job rescheduled",
    "schedule_paused": "Job paused",
    "schedule_resumed": "Job resumed",
    "sign_in_link_made": "Sign-in link made",
}
_JOBS = ("extraction", "study", "import", "verification")
# All actions, for the suggestions of a filter.
ACTIONS = (
    *_WORDS,
    "edited",
    "archived",
    "restored",
    "released",
    "purged",
    "pinned",
    "unpinned",
    "categorized",
    "merged",
    "kept_both",
    "kept_both_undone",
    "superseded",
    "supersedes",
    "unlinked",
    "reference_cut",
    "rule_skipped",
    "policy_saved",
    "policy_rolled_back",
    "run_applied",
    "run_approved",
    "run_refused",
    "run_undone",
    "forgetting_paused",
    "forgetting_resumed",
    "key_created",
    "key_revoked",
    "person_invited",
    "person_role_changed",
    "person_removed",
    "person_disabled",
    "person_enabled",
    "password_set",
    "job_retried",
    "exported",
    "imported",
    "import_released",
    *(f"{job}_{status}" for job in _JOBS for status in ("started", "done", "cancelled", "failed", "resumed")),
    "conversation_undone",
    "notification_target_added",
    "notification_target_changed",
    "notification_target_removed",
    "notification_secret_renewed",
    "notification_sent_again",
    "store_created",
    "store_moved",
    "store_dropped",
)


def action_words(action: str) -> str:
    """Return the words for an action: ``Created`` for ``ingest_new_topic``."""
    return _WORDS.get(action) or action.replace("_", " ").capitalize()


def actions_of(words: str) -> list[str]:
    """Return the actions in ``_WORDS`` that pages show as ``words``, ignoring case. The name of any other action can be
    derived from its words."""
    wanted = " ".join(words.casefold().split())
    return [action for action, shown in _WORDS.items() if shown.casefold() == wanted]


def actions_suggested(text: str, *, most: int) -> list[str]:
    """Return the words of at most ``most`` actions whose words contain ``text``, ignoring case. No query."""
    found = (action_words(action) for action in ACTIONS)
    return [words for words in found if text.casefold() in words.casefold()][:most]
