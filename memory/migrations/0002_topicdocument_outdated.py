"""Marks the documents with letters outside ASCII. The worker makes them again with ``words_for_search``."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('memory', '0001_initial')]

    operations = [
        migrations.AddField(
            model_name='topicdocument',
            name='outdated',
            field=models.BooleanField(
                default=False,
                db_default=False,
                help_text='An older release made the document; it is made again.',
            ),
        ),
        migrations.RunSQL(
            """
            UPDATE memory_topicdocument SET outdated = true
            WHERE octet_length(document::text) <> char_length(document::text)
            """,
            migrations.RunSQL.noop,
        ),
        migrations.AddIndex(
            model_name='topicdocument',
            index=models.Index(
                condition=models.Q(('outdated', True)), fields=['topic'], name='topicdocument_outdated'
            ),
        ),
    ]
