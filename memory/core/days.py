"""Days in UTC."""

import datetime as dt


def utc_days(days: int, *, now: dt.datetime) -> list[dt.date]:
    """Return the last ``days`` days in UTC, earliest first, including today."""
    today = now.astimezone(dt.UTC).date()
    return [today - dt.timedelta(days=before) for before in range(days - 1, -1, -1)]


def day_begin(day: dt.date) -> dt.datetime:
    """Return the time at which a day in UTC begins."""
    return dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)


def days_begin(days: int, *, now: dt.datetime) -> dt.datetime:
    """Return the time at which the period of the last ``days`` days in UTC begins. The last day is today."""
    return day_begin(utc_days(days, now=now)[0])
