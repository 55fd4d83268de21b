"""ForgetPause: a scope in which nothing is forgotten until the pause is lifted."""

from django.db import models


class ForgetPause(models.Model):
    """One pause. It is active until it is lifted or ``until`` has passed. Ended pauses stay as rows."""

    scope = models.CharField(max_length=500)
    reason = models.TextField()
    actor = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    until = models.DateTimeField(null=True, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope"], name="forgetpause_unlifted", condition=models.Q(lifted_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.scope} by {self.actor}"
