from django.db import migrations


class Migration(migrations.Migration):
    """Added the names of other scripts to the index of mentions. The next migration computes them all anew."""

    dependencies = [("memory", "0007_truth_after_undo")]

    operations = []
