# Two commands for everybody: `make demo` and `make test`. Both need Linux, Python >= 3.11 with pip, and nothing else.
# Each makes what it needs in .venv; what is installed already is left alone.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PROJECTS := pyproject.toml $(wildcard plugins/*/pyproject.toml)
TEST_TOOLS := $(shell sed -n '/^dev = \[/,/^\]/{s/^ *"\(.*\)",.*/"\1"/p}' pyproject.toml)
# tests on all cores, but few at a time: some fill memory on purpose
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist worksteal

# a browser for the tests of `moraine view`, which are skipped without; installed only where that needs no question
BROWSER := command -v chromium chromium-browser google-chrome > /dev/null || { [ $$(id -u) = 0 ] && \
  apt-get update -qq && apt-get install -y -qq chromium; } > /dev/null 2>&1

# checks the types in the scripts of `moraine view`, which run as they are: Node.js is needed for nothing else
TSC := npx --yes --package typescript@5.9.3 -- tsc

.PHONY: demo test lint floors bench clean

demo: $(VENV)/installed
	$(BIN)/moraine run pipelines/demo.toml
	@echo
	$(BIN)/python tools/demo_truth.py demo
	@echo
	@echo "Persistent scatterers are in demo/ps, distributed ones in demo/ds, the time series of both in demo/unw,"
	@echo "pictures in demo/.moraine/demo/quicklook. What they show: docs/scatterers.md and docs/unwrapping.md"
	@echo "See what was done: $(BIN)/moraine status pipelines/demo.toml"
	@echo "Look at it in a browser: $(BIN)/moraine view demo"

test: $(VENV)/tools
	@$(BROWSER) || true
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(PYTEST)

# the whole suite once more, with the lowest versions that the packages allow
floors: $(VENV)/tools
	$(PYTHON) -m venv $(VENV)-floors
	$(BIN)/python tools/floors.py > $(VENV)-floors/floors.txt
	$(VENV)-floors/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(VENV)-floors/floors.txt --requirement requirements-all.txt $(TEST_TOOLS)
	MORAINE_CACHE_DIR=$(VENV)-floors/cache $(VENV)-floors/bin/python -m pytest $(SIDE_BY_SIDE) $(PYTEST)

lint: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if $(TSC) --version > /dev/null 2>&1; then echo "$(TSC) ..." && $(TSC) --project tests/plugins/view/types; \
	  else echo "moraine view: the types of the page were NOT CHECKED: that needs npx (of Node.js) and its registry" >&2; fi

bench: $(VENV)/tools
	$(BIN)/python tools/bench all

clean:
	rm -rf $(VENV) $(VENV)-floors demo .cache .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "moraine needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(PROJECTS) requirements-all.txt constraints.txt | $(VENV)/bin/python
	$(PIP) --requirement requirements-all.txt
	touch $@

$(VENV)/tools: $(VENV)/installed
	$(PIP) $(TEST_TOOLS)
	touch $@
