import django.contrib.postgres.indexes
from django.db import migrations, models

# Earlier versions copied the statement of a topic from these fields to its title or summary. A later correction changed
# only the field. The copies are emptied, also where the field has been corrected since. A title that only begins like
# the statement stays if it is short, such as a name.
_STATEMENTS_SQL = r"""
WITH said AS (
    SELECT t.id, lower(regexp_replace(rtrim(t.title, ' .…'), '\s+', ' ', 'g')) AS title, t.title LIKE '%…' AS is_cut,
           lower(regexp_replace(rtrim(t.summary, ' .…'), '\s+', ' ', 'g')) AS summary,
           lower(regexp_replace(rtrim(r.value, ' .…'), '\s+', ' ', 'g')) AS value, f.last_seq
    FROM memory_topic t
    JOIN memory_field f ON f.topic_id = t.id AND f.name IN ('note', 'memory', 'fact', 'text')
    JOIN memory_revision r ON r.field_id = f.id
    WHERE (t.title <> '' OR t.summary <> '')
      AND EXISTS (SELECT 1 FROM memory_revision c WHERE c.field_id = f.id AND c.seq = f.last_seq AND c.value <> '')
), copied AS (
    SELECT id, bool_or(title <> '' AND starts_with(value, title) AND (is_cut OR 2 * length(title) > length(value))) AS
               of_title,
           bool_or(summary <> '' AND value = summary) AS of_summary, bool_or(last_seq > 1) AS is_corrected
    FROM said GROUP BY id
), emptied AS MATERIALIZED (
    SELECT c.id, s.path, c.is_corrected,
           (CASE WHEN of_title THEN jsonb_build_object('title', t.title) ELSE '{}' END)
           || (CASE WHEN of_summary THEN jsonb_build_object('summary', t.summary) ELSE '{}' END) AS before
    FROM copied c JOIN memory_topic t ON t.id = c.id JOIN memory_scope s ON s.id = t.scope_id WHERE of_title OR of_summary
), topics AS (
    UPDATE memory_topic t
    SET title = CASE WHEN e.before ? 'title' THEN '' ELSE t.title END,
        summary = CASE WHEN e.before ? 'summary' THEN '' ELSE t.summary END
    FROM emptied e WHERE t.id = e.id
), documents AS (
    UPDATE memory_topicdocument d SET outdated = true FROM emptied e WHERE d.topic_id = e.id
), vectors AS (
    UPDATE memory_topicvector v SET embedding = NULL FROM emptied e WHERE v.topic_id = e.id AND e.is_corrected
), edits AS (
    INSERT INTO memory_topicedit (topic_id, at, before, actor) SELECT id, statement_timestamp(), before, 'system' FROM emptied
)
INSERT INTO memory_auditevent (at, actor, action, topic_id, scope, reason, before, after)
SELECT statement_timestamp(), 'system', 'edited', e.id, e.path, 'The text repeated a value, which stays.', e.before,
       (SELECT jsonb_object_agg(x.key, '') FROM jsonb_object_keys(e.before) AS x (key))
FROM emptied e
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_titles_may_be_empty")]

    operations = [
        migrations.AddIndex(
            model_name="topicvector",
            index=django.contrib.postgres.indexes.HashIndex(
                condition=models.Q(("live", True)), fields=["text_hash"], name="topicvector_text"
            ),
        ),
        migrations.RunSQL(_STATEMENTS_SQL, migrations.RunSQL.noop),
    ]
