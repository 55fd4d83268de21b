import json
import uuid
from itertools import groupby

from django.db import migrations, models
import django.contrib.postgres.fields

from memory.text.keys import keys_index
from memory.text.name_match import sounds_index

# The index of earlier versions has fewer notations of an identifier, and fewer names of other scripts.
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
    SELECT d.id, ARRAY(SELECT jsonb_array_elements_text(d.keys)) AS keys,
           ARRAY(SELECT jsonb_array_elements_text(d.words)) AS words
    FROM unnest(%(ids)s::uuid[], %(keys)s::jsonb[], %(words)s::jsonb[]) AS d (id, keys, words)
)
UPDATE memory_topicmention m
SET identifiers = g.keys,
    words = ARRAY(SELECT e COLLATE "C" FROM (
        SELECT w FROM unnest(m.words) w WHERE w NOT LIKE '%%~%%' UNION SELECT unnest(g.words)) x (e) ORDER BY 1)
FROM given g WHERE m.topic_id = g.id
"""


def keys_set(apps, schema_editor):
    after = uuid.UUID(int=0)
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(_TEXTS_SQL, {"after": after, "batch": BATCH})
            rows = cursor.fetchall()
            if not rows:
                return
            keys, words = {}, {}
            for topic_id, texts in groupby(rows, key=lambda row: row[0]):
                texts = [text for _id, text in texts if text]
                keys[topic_id] = json.dumps(sorted(set().union(*map(keys_index, texts))))
                sounds = set().union(*map(sounds_index, texts))
                words[topic_id] = json.dumps(sorted(sound for sound in sounds if len(sound) <= 100))
            cursor.execute(_SET_SQL, {"ids": list(keys), "keys": list(keys.values()), "words": list(words.values())})
            after = max(keys)


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
