from django.db import migrations


def operators_make(apps, schema_editor):
    """The group whose members may change things in the console."""
    apps.get_model("auth", "Group").objects.get_or_create(name="Operators")


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0002_forgetting"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Going back leaves the group: accounts may hang on it.
    operations = [migrations.RunPython(operators_make, migrations.RunPython.noop)]
