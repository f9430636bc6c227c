# Everything a contributor or a first user types. Each target sets up what it needs: see "venv" below.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test quick lint format bench soak up down lock test-lowest clean

VENV ?= .venv
LOCK ?= requirements.lock
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { command -v $$p; break; }; done)
READY := $(VENV)/.ready-$(shell cat pyproject.toml $(LOCK) 2>/dev/null | sha256sum | cut -c1-16)
BIN := $(VENV)/bin

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## validate the examples in isolated sandboxes on the local platform, live
	$(BIN)/uom-sandbox demo

test: $(READY) ## all tests
	$(BIN)/python -m pytest

quick: $(READY) ## the tests that take seconds
	$(BIN)/python -m pytest -m "not slow" $(TESTS)

lint: $(READY) ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## print the benchmark figures
	$(BIN)/python -m tests.bench

soak: $(READY) ## 500 validations with random faults of the platform
	UOM_SOAK=500 UOM_HYGIENE=500 $(BIN)/python -m pytest tests/endurance/test_soak.py tests/endurance/test_client_hygiene.py -s

up: $(READY) ## start the local platform and the Prefect server in the background
	$(BIN)/uom-sandbox up

down: $(READY) ## stop them
	$(BIN)/uom-sandbox down

test-lowest: ## what meets our dependencies, with their oldest supported versions
	$(MAKE) quick VENV=.venv-lowest LOCK=requirements-lowest.lock TESTS="tests/contract tests/sandbox tests/blocks tests/flows"

# The lock files hold versions and hashes only; whichever package index the machine is set up with serves them.
lock: ## resolve the dependencies anew
	$(BIN)/python -m pip install --quiet uv
	for spec in "--universal -o requirements.lock" "--resolution lowest-direct -o requirements-lowest.lock"; do \
	  $(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --python-version 3.11 --no-annotate \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --upgrade --quiet $$spec; \
	done

clean: ## remove the virtual environments and caches
	rm -rf .venv .venv-lowest .mypy_cache .ruff_cache .pytest_cache

# The environment is complete once the stamp is there, so a second call needs no network.
$(READY): pyproject.toml $(LOCK)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
	    { echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }; \
	  apt-get update -qq; apt-get install -y -qq python3-venv; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)
