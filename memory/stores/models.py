"""The tables that all stores share: stores, the store of each key, roles of people, and the worker's heartbeat."""

from django.conf import settings
from django.db import models


class Store(models.Model):
    """A store. Its tables are in the schema ``store_<name>``. A store of another cluster has no tables here; the entry
    only says where the store is."""

    name = models.CharField(max_length=40, primary_key=True)
    cluster = models.CharField(
        max_length=200, blank=True, default="", help_text="The cluster that has the store. Empty for this one."
    )
    version = models.CharField(max_length=200, default="", help_text="The last migration of its tables.")
    created_at = models.DateTimeField()
    pending_at = models.DateTimeField(null=True, blank=True, help_text="Since when it has work for upkeep, if any.")
    used_at = models.DateTimeField(null=True, blank=True, help_text="When upkeep last had work there.")

    class Meta:
        indexes = [
            # Upkeep reads this index each minute. Idle stores are not in it.
            models.Index(fields=["pending_at"], name="store_pending", condition=models.Q(pending_at__isnull=False))
        ]
        constraints = [
            # Every store with a version is in this cluster, so code that compares versions need not compare clusters.
            models.CheckConstraint(
                condition=models.Q(cluster="") | models.Q(version=""), name="store_elsewhere_has_no_tables"
            )
        ]

    def __str__(self) -> str:
        return self.name


class KeyStore(models.Model):
    """The store of a key. The key itself, with its role and its scope, is a row in that store."""

    secret_hash = models.CharField(max_length=64, primary_key=True)
    store = models.ForeignKey(Store, on_delete=models.CASCADE)
    installation = models.BooleanField(default=False, help_text="Whether a request with this key may name any store.")


class StoreRole(models.Model):
    """What a person may do in a store (``memory.access.accounts``)."""

    store = models.ForeignKey(Store, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=20)

    class Meta:
        # The index of this constraint also finds the roles of a person.
        constraints = [models.UniqueConstraint(fields=["user", "store"], name="store_role_once")]


class WorkerHeartbeat(models.Model):
    """The time of the worker's last scheduled job, which proves that scheduler, queue and worker are running."""

    name = models.CharField(max_length=100, unique=True)
    seen_at = models.DateTimeField()
