# Two commands on a machine with Python 3.11 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test check lint types bench clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $(STAMP)

$(VENV)/.installed-test: $(STAMP)
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

demo: $(STAMP)  ## release a private vocabulary from the text of Python's own standard library
	$(BIN)/voxpop demo

test: $(VENV)/.installed-test  ## run the test suite
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/.installed-test  ## ruff
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.installed-test  ## mypy --strict
	$(BIN)/mypy

check: lint types test  ## everything fast

clean:  ## remove what was made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
