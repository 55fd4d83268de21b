# `make run` starts MemState, `make test` checks it. Both need Python 3.11 or newer and nothing else.

# The first suitable Python; `make run PYTHON=...` chooses another one.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; exit; }; \
	done; echo python3)
VENV := .venv
PY := $(VENV)/bin/python
# Only files whose hash is in the lock file are installed.
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --require-hashes
LOCK := $(VENV)/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-emit-index-url
# Checks read the settings but start nothing; a fixed key keeps them from writing one to the data folder.
CHECK := MEMSTATE_SECRET_KEY=only-for-checks-that-start-nothing $(VENV)/bin

# Many failures have one cause, so that a run ends after some of them.
PYTEST := $(PY) -m pytest --maxfail=15 --no-loadscope-reorder

TEMPLATES = $(shell find templates -name '*.html')

.DEFAULT_GOAL := help
.PHONY: help run demo doctor test test-all files lint format lock bench load pictures clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.installed ## Start MemState; Ctrl-C stops it.
	@exec $(PY) manage.py up

demo: $(VENV)/.installed ## Fill the store with half a year of an assistant's memory.
	@exec $(PY) manage.py demo

doctor: $(VENV)/.installed ## Run the health checks.
	@exec $(PY) manage.py doctor

# The tests start hundreds of processes, which would each compile all files if Python may not keep the result.
test test-all: export PYTHONDONTWRITEBYTECODE =

# The quick checks come first.
test: lint ## Run the checks and the tests of all behaviour.
	@browser=$$(.ci/browser $(PY)) && export MEMSTATE_TEST_BROWSER="$$browser" && \
		exec $(PYTEST) --minutes 25 -n 3 --dist loadfile -m "not bench and not alone and not thorough"

test-all: lint ## Run everything: also kills, races at full number, generated requests and all browser variants.
	@browser=$$(.ci/browser $(PY)) && export MEMSTATE_TEST_BROWSER="$$browser" && \
		export MEMSTATE_TEST_WRITES=20 MEMSTATE_TEST_KILLS=10 MEMSTATE_TEST_VIEWS=1 MEMSTATE_TEST_CITUS_RULES=1 && \
		$(PYTEST) --minutes 10 -m alone && \
		exec $(PYTEST) --minutes 60 -n 5 --dist loadfile -m "not bench and not alone"

# The first sentence of the docstring of each file.
files: ## List the files with what each contains.
	@find memory memstate_site -name '*.py' -not -path '*/migrations/*' -not -empty | sort | while read -r file; do \
		awk -v file="$$file" 'NR == 1 && !/^"""/ {exit} {text = text " " $$0} \
			/[.!]( |"|$$)/ {gsub(/"""/, "", text); sub(/\. .*/, ".", text); print file ":" text; exit}' "$$file"; done

lint: $(VENV)/.installed-dev ## Run the checks that need no database.
	@$(CHECK)/ruff check
	@$(CHECK)/ruff format --check
	@$(CHECK)/djade --target-version 5.2 --check $(TEMPLATES)
	@$(CHECK)/lint-imports --no-logo
	@$(CHECK)/python manage.py makemigrations --check --dry-run
	@$(CHECK)/python manage.py openapi --check
	@$(CHECK)/mypy

format: $(VENV)/.installed-dev ## Format the code and the templates.
	@$(CHECK)/ruff check --fix
	@$(CHECK)/ruff format
	@$(CHECK)/djade --target-version 5.2 $(TEMPLATES)

lock: $(VENV)/.installed-dev ## Renew the versions and hashes of the packages in the lock files.
	@$(LOCK) --upgrade requirements.txt --output-file requirements.lock
	@grep -E '^[a-zA-Z].*==' requirements.lock | sed 's/ \\$$//' > $(VENV)/versions.txt
	@$(LOCK) --upgrade requirements-dev.txt --constraints $(VENV)/versions.txt --output-file requirements-dev.lock

bench: $(VENV)/.installed-dev ## Measure speed against the minimum values.
	@exec $(PY) -m pytest -m bench -s

# The tool is fetched for this command alone.
load: $(VENV)/.installed-dev ## Send mixed traffic to the running installation for ten minutes.
	@exec $(VENV)/bin/uv tool run --with psutil --from 'locust>=2.32,<3' locust --locustfile tests/load/locustfile.py \
		--headless --only-summary --users 16 --spawn-rate 4 --run-time 10m \
		--host "http://127.0.0.1:$${MEMSTATE_API_PORT:-8765}"

pictures: $(VENV)/.installed-dev ## Take the pictures of docs/pictures again.
	@browser=$$(.ci/browser $(PY)) && export MEMSTATE_TEST_BROWSER="$$browser" && exec $(PY) -m tests.browser.pictures

clean: ## Remove the environment and all caches; the data folder stays.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# An environment whose Python no longer exists, as after a system upgrade, is created again.
define make_environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "MemState needs Python 3.11 or newer, and $(PYTHON) is older. Choose another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot create environments; on Debian and Ubuntu: apt-get install python3-venv." >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || { $(PYTHON) -m venv --clear $(VENV) && \
		$(PY) -m pip --disable-pip-version-check uninstall --quiet --yes setuptools 2>/dev/null; }
endef

$(VENV)/.installed: requirements.lock
	$(make_environment)
	@echo "Installing the packages; this happens once and takes about a minute." >&2
	@$(PIP) -r requirements.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock requirements.lock
	$(make_environment)
	@echo "Installing the packages for checks and tests; this happens once and takes about a minute." >&2
	@$(PIP) -r requirements-dev.lock
	@touch $@ $(VENV)/.installed
