"""ApiKey: the role and the scope of a caller. Only a hash of the secret is stored."""

import datetime as dt

from django.db import models


class ApiKey(models.Model):
    """A key. Revoked keys stay, so that journals can name them."""

    class Role(models.TextChoices):
        """Each role includes the rights of the roles before it."""

        READER = "reader"
        AGENT = "agent"
        OPERATOR = "operator"

    id = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=200)
    role = models.CharField(max_length=20, choices=Role.choices)
    scope = models.CharField(max_length=500, default="/", help_text="Nothing outside this path is visible or writable.")
    may_forget = models.BooleanField(
        default=False, help_text="An agent with this key may release topics, within agent_forget_share."
    )
    prefix = models.CharField(max_length=20, help_text="The first characters, which distinguish keys for people.")
    secret_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        constraints = [
            # For authentication, which happens once per request.
            models.UniqueConstraint(fields=["secret_hash"], name="apikey_unique_secret")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_expired(self, now: dt.datetime) -> bool:
        """Return whether the key has expired."""
        return self.expires_at is not None and self.expires_at <= now
