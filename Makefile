# Two commands on a machine with Python 3.11 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test check lint types bench bench-peers federation clean

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

bench: $(VENV)/.installed-bench  ## every table, figure and speed comparison that needs no peer
	for name in dpsu_table2 dpsu_table3 dpsu_figure12 dpne_table4 dpne_text dpne_figures \
		sequences_msnbc speed_sequences speed_text speed_pairs speed_naive speed_ngrams growth \
		set_only triehh_theory triehh_holders triehh_words; do \
		$(BIN)/python -m benchmarks.$$name || exit 1; done

bench-peers: $(VENV)/.installed-bench  ## pairs against OpenDP and PipelineDP, in an environment of their own
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt
	$(BIN)/python -m benchmarks.speed_pairs --peers

federation: $(VENV)/.installed-test  ## start a SuperLink and SuperNodes on loopback and run heavy hitters over them
	$(PYTHON) -m venv .venv-flower
	.venv-flower/bin/python -m pip install --quiet --upgrade pip
	.venv-flower/bin/python -m pip install --quiet --editable ".[flower]" --group test
	.venv-flower/bin/python -m pytest -q tests/hitters/test_flower.py

clean:  ## remove what was made
	rm -rf $(VENV) .venv-flower .pytest_cache .mypy_cache .ruff_cache .hypothesis
