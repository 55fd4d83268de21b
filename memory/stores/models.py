"""The tables that all stores share: the list of stores, the way from a key to its store, and the worker's heartbeat."""

from django.db import models


class Store(models.Model):
    """A store. Its tables are in the schema ``store_<name>``."""

    name = models.CharField(max_length=40, primary_key=True)
    version = models.CharField(max_length=200, default="", help_text="The last migration of its tables.")
    created_at = models.DateTimeField()
    pending_at = models.DateTimeField(null=True, blank=True, help_text="Since when it has work for upkeep, if any.")
    used_at = models.DateTimeField(null=True, blank=True, help_text="When upkeep last had work there.")

    class Meta:
        indexes = [
            # What upkeep reads each minute, whatever the number of idle stores.
            models.Index(fields=["pending_at"], name="store_pending", condition=models.Q(pending_at__isnull=False))
        ]

    def __str__(self) -> str:
        return self.name


class KeyStore(models.Model):
    """To which store a key belongs. The key itself is a row of that store, with its role and its scope."""

    secret_hash = models.CharField(max_length=64, primary_key=True)
    store = models.ForeignKey(Store, on_delete=models.CASCADE)


class WorkerHeartbeat(models.Model):
    """When the worker last ran a scheduled job, which proves scheduler, queue and worker at once."""

    name = models.CharField(max_length=100, unique=True)
    seen_at = models.DateTimeField()
