"""Schedules, queue and worker as people see them (``told``), and what they may do with them (``acts``): run now, pause,
change, try again.

The schedules of policies are written by the policy room and follow its policies; those of upkeep belong to nobody else
and are an operator's to change. docs/jobs.md says what each job does.
"""
