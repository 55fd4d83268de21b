from django.db import migrations, models

# Earlier versions stored this title for topics without one. It was no part of what is found or summarized.
_TITLES_SQL = "UPDATE memory_topic SET title = '' WHERE title = 'untitled'"


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0003_revision_dates"),
    ]

    operations = [
        migrations.AlterField(
            model_name="topic",
            name="title",
            field=models.CharField(blank=True, max_length=1000),
        ),
        migrations.RunSQL(_TITLES_SQL, migrations.RunSQL.noop),
    ]
