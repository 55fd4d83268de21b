import json
import uuid
from itertools import groupby

from django.db import migrations, models
import django.contrib.postgres.fields

from memory.text.keys import keys_index

# The index of earlier versions has fewer notations of an identifier, and other names for them.
BATCH = 1_000
_TEXTS_SQL = """
WITH part AS MATERIALIZED (
    SELECT id, title, summary FROM memory_topic WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
)
SELECT id, title FROM part
UNION ALL
SELECT id, summary FROM part
UNION ALL
SELECT f.topic_id, x.text
FROM part JOIN memory_field f ON f.topic_id = part.id JOIN memory_revision r ON r.field_id = f.id
CROSS JOIN LATERAL (VALUES (r.value), (r.why_changed), (r.impact_expected)) x (text)
UNION ALL
SELECT e.topic_id, x.text
FROM part JOIN memory_topicedit e ON e.topic_id = part.id
CROSS JOIN LATERAL (VALUES (e.before->>'title'), (e.before->>'summary')) x (text)
ORDER BY 1
"""
_SET_SQL = """
WITH given AS MATERIALIZED (
    SELECT d.id, ARRAY(SELECT jsonb_array_elements_text(d.keys)) AS keys
    FROM unnest(%(ids)s::uuid[], %(keys)s::jsonb[]) AS d (id, keys)
)
UPDATE memory_topicmention m SET identifiers = g.keys FROM given g
WHERE m.topic_id = g.id AND m.identifiers <> g.keys
"""


def keys_set(apps, schema_editor):
    after = uuid.UUID(int=0)
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(_TEXTS_SQL, {"after": after, "batch": BATCH})
            rows = cursor.fetchall()
            if not rows:
                return
            found = {
                topic_id: sorted(set().union(*(keys_index(text) for _id, text in texts if text)))
                for topic_id, texts in groupby(rows, key=lambda row: row[0])
            }
            cursor.execute(_SET_SQL, {"ids": list(found), "keys": [json.dumps(keys) for keys in found.values()]})
            after = max(found)


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_names_in_other_scripts")]

    operations = [
        migrations.AlterField(
            model_name="topicmention",
            name="identifiers",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                default=list,
                help_text="Keys of addresses, codes and numbers, sorted.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="erasurereceipt",
            name="spelling_hashes",
            field=models.JSONField(
                default=list, help_text="HMAC-SHA-256 of each spelling of names and identifiers that was searched."
            ),
        ),
        migrations.AlterField(
            model_name="forgetlisting",
            name="count",
            field=models.PositiveIntegerField(default=0, help_text="How many of the topics are chosen."),
        ),
        migrations.RunPython(keys_set, migrations.RunPython.noop),
    ]
