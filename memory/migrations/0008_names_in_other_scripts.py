import json
import uuid
from itertools import groupby

from django.db import migrations

from memory.text.name_match import sounds_index

# The index of earlier versions finds no name in another script than that of the request.
BATCH = 1_000
_TEXTS_SQL = """
WITH part AS MATERIALIZED (
    SELECT id, title, summary FROM memory_topic WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
)
SELECT id, title FROM part
UNION ALL
SELECT id, summary FROM part
UNION ALL
SELECT f.topic_id, concat_ws(E'\\n', r.value, r.why_changed, r.impact_expected)
FROM part JOIN memory_field f ON f.topic_id = part.id JOIN memory_revision r ON r.field_id = f.id
UNION ALL
SELECT e.topic_id, concat_ws(E'\\n', e.before->>'title', e.before->>'summary')
FROM part JOIN memory_topicedit e ON e.topic_id = part.id
ORDER BY 1
"""
_ADD_SQL = """
WITH added AS MATERIALIZED (
    SELECT d.id, ARRAY(SELECT jsonb_array_elements_text(d.words)) AS words
    FROM unnest(%(ids)s::uuid[], %(words)s::jsonb[]) AS d (id, words)
)
UPDATE memory_topicmention m
SET words = ARRAY(SELECT e COLLATE "C" FROM (SELECT unnest(m.words) UNION SELECT unnest(a.words)) x (e) ORDER BY 1)
FROM added a WHERE m.topic_id = a.id AND NOT m.words @> a.words
"""


def names_add(apps, schema_editor):
    after = uuid.UUID(int=0)
    with schema_editor.connection.cursor() as cursor:
        while True:
            cursor.execute(_TEXTS_SQL, {"after": after, "batch": BATCH})
            rows = cursor.fetchall()
            if not rows:
                return
            found = {}
            for topic_id, texts in groupby(rows, key=lambda row: row[0]):
                found[topic_id] = sorted({key for _id, text in texts for key in sounds_index(text) if len(key) <= 100})
            words = [json.dumps(keys) for keys in found.values()]
            cursor.execute(_ADD_SQL, {"ids": list(found), "words": words})
            after = max(found)


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_truth_after_undo")]

    operations = [migrations.RunPython(names_add, migrations.RunPython.noop)]
