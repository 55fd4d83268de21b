"""Background jobs: the base of resumable jobs (``resumable``), the tasks of the worker, schedules and retry."""
