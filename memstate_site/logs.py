"""The format of log lines: text for people by default, or JSON for programs."""

from __future__ import annotations

import sys
from typing import Any

import structlog

LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# These packages log each of their steps at INFO, which would hide other lines.
CHATTY = ("django-q", "gunicorn", "httpx", "httpcore", "httpx2", "httpcore2", "urllib3", "asyncio", "axes", "mcp")

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_settings(*, style: str, level: str) -> dict[str, Any]:
    """Return the `dictConfig` for every process, and configure structlog to log through it."""
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    quiet = level if level != "INFO" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": "structlog.stdlib.ProcessorFormatter",
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(style)],
                "foreign_pre_chain": [*_SHARED, structlog.stdlib.ExtraAdder()],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django gives these loggers their own handlers. They are removed, so that each line is logged once, by the
            # root logger.
            "django": {"handlers": [], "level": level, "propagate": True},
            # Refused requests are not logged, because the client gets the reason.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            "gunicorn.error": {"handlers": [], "level": quiet, "propagate": True},
            "gunicorn.access": {"handlers": [], "level": quiet, "propagate": True},
            **{name: {"level": quiet} for name in CHATTY},
        },
    }


def _renderers(style: str) -> list[Any]:
    if style == "json":
        return [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    ]
