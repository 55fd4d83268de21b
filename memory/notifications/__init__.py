"""Notifications by webhook and mail: the targets, the outbox, and its sender."""
