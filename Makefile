# Needs only Python 3.11 or newer and make; everything else goes into .venv, in the versions of constraints.txt.
#
#   make demo     run the bundled example to its end, in the terminal, without a network
#   make test     run all tests                        (PYTEST_ARGS="-k name" narrows them)
#   make check    format, lint, types, imports, spelling, schemas, coverage
#   make serve    the HTTP API on http://127.0.0.1:8080 over the bundled example
#   make fix      let the formatter and the linter mend what they can
#   make lock     resolve the dependencies anew: uv.lock and constraints.txt
#   make clean    throw .venv and all caches away

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -qq --no-input --disable-pip-version-check --constraint constraints.txt
PYTEST_ARGS ?=

# Compiled modules are kept: the tests start some hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check serve fix lock clean help
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.run
	@$(BIN)/loopagent demo --headless

serve: $(VENV)/.run
	@$(BIN)/loopagent serve --project examples/demo

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

check: $(VENV)/.dev
	@scripts/check

fix: $(VENV)/.dev
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

lock: $(VENV)/.dev
	@scripts/lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* build dist

# --- environment: the stamps make every later call instant ------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "loopagent needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=python3.12 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing loopagent into $(VENV) …"
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing loopagent and its tools into $(VENV) …"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/.run $@
