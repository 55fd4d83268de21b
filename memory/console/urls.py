"""The URLs of the console. Each page defines its own; the permission tests read this table."""

from memory.console import undo
from memory.console.pages import (
    account,
    archived,
    assistant,
    audit,
    bulk,
    duplicates,
    extract,
    forget,
    keys,
    lookup,
    model,
    overview,
    pause,
    policies,
    recalls,
    receipts,
    runs,
    salience,
    schedules,
    topic,
    transfer,
)

app_name = "console"

urlpatterns = [
    *overview.urlpatterns,
    *account.urlpatterns,
    *lookup.urlpatterns,
    *recalls.urlpatterns,
    *topic.urlpatterns,
    *archived.urlpatterns,
    *extract.urlpatterns,
    *assistant.urlpatterns,
    *bulk.urlpatterns,
    *undo.urlpatterns,
    *salience.urlpatterns,
    *policies.urlpatterns,
    *runs.urlpatterns,
    *pause.urlpatterns,
    *duplicates.urlpatterns,
    *schedules.urlpatterns,
    *receipts.urlpatterns,
    *forget.urlpatterns,
    *audit.urlpatterns,
    *keys.urlpatterns,
    *model.urlpatterns,
    *transfer.urlpatterns,
]
