"""Background jobs: what all resumable ones share (``resumable``), the tasks of the worker, schedules and retry."""
