# Retoma: everything that a checkout needs, from nothing but make and Python 3.11 or newer.

.DEFAULT_GOAL := help
SHELL := /bin/sh
.SUFFIXES:
.PHONY: help setup demo test check campaign format python clean

VENV := .venv
BIN := $(VENV)/bin
# A new environment is needed when the dependencies change, and when the checkout has moved.
KEY := $(shell (pwd; cat pyproject.toml) | cksum | tr -dc '0-9')
STAMP := $(VENV)/ready-$(KEY)
# One database server of each kind runs in each test process.
WORKERS ?= 2

# The first Python that truly runs (a version manager's shim may exist and fail), is new enough, and
# can make virtual environments.
FITS := import sys; sys.exit(sys.version_info < (3, 11))
MAKES_VENV := import venv, ensurepip; ensurepip.version()
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c '$(FITS)' && $$p -c '$(MAKES_VENV)'; then command -v $$p; break; fi; \
	done 2>/dev/null)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## a night's job, killed and taken up again before your eyes
	@$(BIN)/retoma demo

test: check ## all checks, then all tests but the long ones
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not campaign and not slow'

check: $(STAMP) ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

campaign: $(STAMP) ## the long tests: many random kills and seeds
	RETOMA_TEST_PROFILE=campaign $(BIN)/python -m pytest -n $(WORKERS) -m 'campaign or slow' --timeout 1800

format: $(STAMP) ## put the source into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP) ## the environment in .venv, and nothing else
	@echo "Ready: $(BIN)/retoma"

python: ## which Python would be used
	@$(call found)

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml
	@$(call found)
	@if ! $(BIN)/python -c '$(FITS)' 2>/dev/null; then \
		rm -rf $(VENV); \
		"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); $(call no_venv); exit 1; }; \
	fi
	@rm -f $(VENV)/ready-*
	@echo "Installing Retoma and its tools into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

define found
if [ -n "$(PYTHON)" ]; then echo "Python: $(PYTHON)" >&2; \
elif (for p in python3.13 python3.12 python3.11 python3; do $$p -c '$(FITS)' && exit 0; done; exit 1) 2>/dev/null; \
then $(call no_venv); exit 1; \
else \
	echo "Retoma needs Python 3.11 or newer, and none was found on PATH." >&2; \
	echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1; \
fi
endef

define no_venv
{ \
	echo "This Python cannot make a virtual environment: its modules venv and ensurepip are not whole." >&2; \
	echo "Debian and Ubuntu keep them apart: apt-get install python3-venv. Or name another: make PYTHON=/path/to/python3" >&2; \
}
endef
