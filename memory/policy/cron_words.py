"""Cron lines in words, such as `every day at 03:00 UTC`."""

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {name[:3].lower(): number for number, name in enumerate(_DAYS[:7])}


def cron_words(cron: str) -> str:
    """Return a valid cron line in words. A line too complex for a few words is quoted."""
    minute, hour, day, month, weekday = cron.split()
    times = _times(minute, hour)
    if times is None or month != "*":
        return f"by the cron line {cron}"
    if day == "*" and weekday == "*":
        return times if hour == "*" or hour.startswith("*/") else f"every day {times}"
    days = _days(weekday) if day == "*" else None
    if days is not None:
        return f"{days} {times}" if not times.startswith("every") else f"{times}, {days}"
    if weekday == "*" and day.isdigit() and not times.startswith("every"):
        return f"on day {day} of each month {times}"
    return f"by the cron line {cron}"


def minutes_words(minutes: int) -> str:
    """Return an interval in words."""
    if minutes == 1:
        return "every minute"
    if minutes % 60 == 0:
        hours = minutes // 60
        return "every hour" if hours == 1 else f"every {hours:,} hours"
    return f"every {minutes:,} minutes"


def _times(minute: str, hour: str) -> str | None:
    if minute == "*" and hour == "*":
        return "every minute"
    if minute.startswith("*/") and minute[2:].isdigit() and hour == "*":
        # The steps restart each hour, so this is an interval only if the step divides 60.
        step = int(minute[2:])
        return f"every {step} minutes" if step > 1 and 60 % step == 0 else None
    if not minute.isdigit():
        return None
    if hour == "*":
        return f"every hour at :{int(minute):02d}"
    if hour.startswith("*/") and hour[2:].isdigit() and int(hour[2:]) > 1 and 24 % int(hour[2:]) == 0:
        return f"every {int(hour[2:])} hours at :{int(minute):02d}"
    hours = hour.split(",")
    if all(each.isdigit() for each in hours):
        return f"at {_listed([f'{int(each):02d}:{int(minute):02d}' for each in hours])} UTC"
    return None


def _days(weekday: str) -> str | None:
    if weekday == "1-5" or weekday.lower() == "mon-fri":
        return "Monday to Friday"
    numbers = [_SHORT.get(each.lower(), each) for each in weekday.split(",")]
    if all(str(number).isdigit() and int(number) < len(_DAYS) for number in numbers):
        return _listed([f"{_DAYS[int(number)]}s" for number in numbers])
    return None


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
