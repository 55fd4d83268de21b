import django.db.models.deletion
from django.db import migrations, models

# Topics from before this migration wait to be compared too; the worker works them off in steps.
FILL = """
INSERT INTO memory_duplicatelook (topic_id, scope_id, text_hash, waiting)
SELECT topic_id, scope_id, '', true FROM memory_topicvector ON CONFLICT (topic_id) DO NOTHING
"""


def _to(model: str, **more: object) -> models.ForeignKey:
    return models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to=model, **more)


def _maybe(model: str) -> models.ForeignKey:
    return _to(model, blank=True, null=True, related_name="+")


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0005_command"),
    ]

    operations = [
        migrations.CreateModel(
            name="DuplicateLook",
            fields=[
                (
                    "topic",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to="memory.topic",
                    ),
                ),
                (
                    "text_hash",
                    models.CharField(blank=True, default="", help_text="Of the text compared last.", max_length=64),
                ),
                ("waiting", models.BooleanField(default=True)),
                ("scope", _to("memory.scope")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("waiting", True)), fields=["scope", "topic"], name="duplicatelook_waiting"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DuplicatePair",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("kind", models.CharField(blank=True, default="", max_length=200)),
                (
                    "verdict",
                    models.CharField(choices=[("duplicate", "Duplicate"), ("supersedes", "Supersedes")], max_length=20),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("merged", "Merged"),
                            ("kept", "Kept"),
                            ("superseded", "Superseded"),
                            ("undone", "Undone"),
                            ("lapsed", "Lapsed"),
                        ],
                        default="open",
                        max_length=20,
                    ),
                ),
                (
                    "similarity",
                    models.FloatField(blank=True, help_text="Cosine; none where a vector was missing.", null=True),
                ),
                ("same_title", models.BooleanField(default=False)),
                (
                    "held",
                    models.BooleanField(
                        default=False, help_text="Something that matters differs: never merged by itself."
                    ),
                ),
                (
                    "differences",
                    models.JSONField(
                        default=list, help_text="What differs, by sort; no text beyond the words that differ."
                    ),
                ),
                (
                    "one_hash",
                    models.CharField(help_text="Of what the topic said when they were compared.", max_length=64),
                ),
                ("other_hash", models.CharField(max_length=64)),
                ("found_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("decided_by", models.CharField(blank=True, default="", max_length=200)),
                ("reason", models.TextField(blank=True, default="")),
                ("one", _to("memory.topic", related_name="+")),
                ("other", _to("memory.topic", related_name="+")),
                ("run", _maybe("memory.forgetrun")),
                ("scope", _to("memory.scope")),
                ("survivor", _maybe("memory.topic")),
            ],
            options={
                "indexes": [
                    models.Index(fields=["other"], name="duplicatepair_by_other"),
                    models.Index(fields=["state", "-found_at", "-id"], name="duplicatepair_list"),
                    models.Index(
                        condition=models.Q(("run__isnull", False)), fields=["run"], name="duplicatepair_by_run"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("one", "other"), name="duplicatepair_unique")],
            },
        ),
        migrations.AddIndex(
            model_name="topic",
            index=models.Index(
                condition=models.Q(("merged_into__isnull", False)), fields=["merged_into"], name="topic_merged"
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
