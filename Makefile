# Two commands on a machine with Python 3.11 or later, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Container builds often set this variable. Then both workers compile all tests again in every run, for 6 seconds each.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo docs pictures notebook test check lint types types-of-callers exports dbt bench-all bench-stale federation spark browser audit trust clean \
	fuzz fuzz-coverage faults memory lock licences audit-dependencies wheel wheels-tried \
	proofs checker check-certificates

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# $(call environment,FOLDER) creates an environment, and $(call install,FOLDER,WHAT) installs into it. uv takes a tenth of
# the time of pip (12 instead of 124 seconds for the tests). pip is used if uv is not available or cannot find a package.
environment = $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install --quiet --upgrade pip \
	&& { $(1)/bin/python -m pip install --quiet uv 2> /dev/null || true; }
COMMA := ,
install = $(1)/bin/uv pip install --quiet --compile-bytecode --python $(1)/bin/python $(2) 2> /dev/null \
	|| $(1)/bin/python -m pip install --quiet $(2)

$(STAMP): pyproject.toml
	@echo "Installing into $(VENV). This prints nothing for up to two minutes."
	$(call environment,$(VENV))
	$(call install,$(VENV),--editable .)
	touch $(STAMP)

$(VENV)/.installed-test: $(STAMP)
	$(call install,$(VENV),--require-hashes --requirement requirements/locked.txt)
	$(call install,$(VENV),--group test --group lint)
	touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-test
	$(call install,$(VENV),--group bench)
	touch $@

$(VENV)/.installed-docs: $(STAMP)
	$(call install,$(VENV),--group docs)
	touch $@

demo: $(STAMP)  ## release private phrases from the text of Python's standard library
	$(BIN)/voxpop demo

test: $(VENV)/.installed-test  ## run the test suite
	$(BIN)/python -m pytest $(COVERED) -n 2 --dist worksteal -m "not slow and not browser"

docs: $(VENV)/.installed-docs  ## build the documentation site into out/site, warnings as errors
	rm -rf out/site out/doctrees
	$(BIN)/sphinx-build -q -W --keep-going -d out/doctrees docs out/site
	@echo "out/site/index.html"

pictures: $(VENV)/.installed-docs  ## draw the pictures of the documentation again
	$(BIN)/python docs/pictures/draw.py

notebook: $(VENV)/.installed-docs  ## run the notebook of the documentation again (requires the real data)
	$(BIN)/python docs/notebooks/run.py

lint: $(VENV)/.installed-test  ## check style with ruff
	$(BIN)/ruff check src flower tests benchmarks docs tools hatch_build.py
	$(BIN)/ruff format --check src flower tests benchmarks docs tools hatch_build.py

types: $(VENV)/.installed-test  ## check types with mypy --strict
	$(BIN)/mypy

$(VENV)/.installed-pyright: $(VENV)/.installed-test
	$(call install,$(VENV),--group pyright)
	touch $@

types-of-callers: $(VENV)/.installed-pyright  ## check a caller's code with mypy and pyright
	PATH=$(BIN):$$PATH $(BIN)/python -m pytest -q tests/test_types.py

check: lint types test  ## all fast checks

$(VENV)/.installed-exports: $(VENV)/.installed-test
	$(call install,$(VENV),--group exports)
	touch $@

exports: $(VENV)/.installed-exports  ## test sources and exports with the real libraries, databases and servers
	$(BIN)/python -m pytest -q $(COVERED) -m "not slow" tests/exports tests/doors

dbt: $(VENV)/.installed-exports  ## run the example project of dbt on DuckDB, with dbt in a separate environment
	$(call environment,.venv-dbt)
	$(call install,.venv-dbt,--group dbt)
	VOXPOP_DBT=$(CURDIR)/.venv-dbt/bin/dbt $(BIN)/python -m pytest -q tests/exports/test_dbt.py

SPARK := .venv-spark/.installed
PEERS := benchmarks/.venv/.installed
FLOWER := .venv-flower/.installed

bench-all: $(VENV)/.installed-bench $(SPARK) $(FLOWER) $(PEERS)  ## measure all old results, oldest first; continues an interrupted run
	$(BIN)/python -m benchmarks.all

bench-stale: $(VENV)/.installed-bench  ## list the results that are older than their code
	$(BIN)/python -m benchmarks.all --check

$(PEERS): benchmarks/peers/requirements.txt
	$(call environment,benchmarks/.venv)
	$(call install,benchmarks/.venv,--requirement benchmarks/peers/requirements.txt)
	touch $@

$(FLOWER): pyproject.toml flower/pyproject.toml
	$(call environment,.venv-flower)
	$(call install,.venv-flower,--editable . --editable "./flower[simulation]" --group test)
	touch $@

federation: $(FLOWER)  ## start a SuperLink and SuperNodes on loopback and run heavy hitters over them
	.venv-flower/bin/python -m pytest -q $(COVERED) tests/flower

$(VENV)/.installed-browser: $(VENV)/.installed-test
	$(call install,$(VENV),--group browser)
	touch $@

browser: $(VENV)/.installed-browser  ## test the report in headless Chromium (apt-get install chromium poppler-utils, or VOXPOP_CHROMIUM=path)
	$(BIN)/python -m pytest -q -m browser tests/browser

audit: $(VENV)/.installed-test  ## audit every mechanism at length, and search ten million neighbouring pairs
	PYTHONPATH=tests $(BIN)/python -m audits --trials 2000000
	PYTHONPATH=tests $(BIN)/python -m searches --pairs 10000000

trust: $(VENV)/.installed-test $(SPARK)  ## run the tests behind every claim at full length, and write benchmarks/trust.md
	VOXPOP_FULL=1 VOXPOP_KILLS=50 VOXPOP_TENFOLD=1 VOXPOP_FUZZ=$${VOXPOP_FUZZ:-30000} $(BIN)/python -m benchmarks.pages.trust

$(SPARK): pyproject.toml
	$(call environment,.venv-spark)
	$(call install,.venv-spark,--editable ".[spark]" --group test "pyspark[connect]>=4.0$(COMMA)<5")
	touch $@

spark: $(SPARK)  ## test the Spark engine: local, Connect, and a standalone cluster that loses a worker
	.venv-spark/bin/python -m pytest -q $(COVERED) -n 2 --dist worksteal -m "not data" tests/spark

fuzz: $(VENV)/.installed-test  ## test readers, tokenizers, commands and saved releases with 180,000 generated inputs
	VOXPOP_FUZZ=$${VOXPOP_FUZZ:-30000} $(BIN)/python -m pytest -q -n 2 --dist worksteal --hypothesis-seed=$${VOXPOP_SEED:-$$(date +%s)} tests/fuzz

$(VENV)/.installed-fuzz: $(VENV)/.installed-test
	$(call install,$(VENV),--group fuzz)
	touch $@

fuzz-coverage: $(VENV)/.installed-fuzz  ## run the same tests with inputs selected by their coverage (atheris)
	for test in test_damaged_files_raise_only_input_errors test_random_bytes_raise_only_input_errors test_tables_of_any_types_raise_only_input_errors \
		test_damaged_releases_raise_only_release_errors \
		test_texts_are_split_like_the_reference; do \
		mkdir -p out; $(BIN)/python -m tools.fuzz $$test $${VOXPOP_FUZZ:-30000} > out/fuzz.log 2>&1 \
			|| { tail -60 out/fuzz.log; exit 1; }; echo $$test; tail -1 out/fuzz.log; done

faults: $(VENV)/.installed-test  ## test fifty kills of each kind of save and of a spill, full disks, and files that change
	VOXPOP_KILLS=50 $(BIN)/python -m pytest -q tests/faults

memory: $(VENV)/.installed-test  ## read an input ten times larger than the memory limit (7 GB of disk, and as much for work files)
	$(BIN)/python -m tools.memory

$(VENV)/.installed-supply: $(VENV)/.installed-test
	$(call install,$(VENV),--group supply)
	touch $@

lock: $(VENV)/.installed-supply  ## resolve the dependencies again, with hashes
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --custom-compile-command "make lock" \
		--extra accounting --group test --group lint pyproject.toml --output-file requirements/locked.txt
	sed -i '/^--/d' requirements/locked.txt

licences: $(VENV)/.installed-test  ## list the licences of the dependencies in docs/licences.md
	$(BIN)/python -m tools.licences

audit-dependencies: $(VENV)/.installed-supply  ## list known faults of the locked dependencies (exit code 3 if the database cannot be reached)
	$(BIN)/python -m tools.audit

wheel: $(VENV)/.installed-supply  ## build the wheel twice and compare the bytes
	$(BIN)/python -m tools.wheel

wheels-tried: $(VENV)/.installed-supply  ## try the wheel in clean environments: each Python here, newest and oldest dependencies
	$(BIN)/python -m tools.wheels_tried out/wheels

CHECKER := checker/.venv/.installed

$(CHECKER): checker/pyproject.toml
	$(call environment,checker/.venv)
	$(call install,checker/.venv,--editable checker pytest pytest-xdist)
	touch $@

checker: $(CHECKER)  ## test voxpop-check in an environment without voxpop
	checker/.venv/bin/python -m pytest -q -n 2 --dist worksteal checker/tests

check-certificates: $(VENV)/.installed-test $(CHECKER)  ## plan certificates for a grid of settings, and prove each of them
	$(BIN)/python -m tools.certificates out/certificates
	VOXPOP_CERTIFICATES=$(CURDIR)/out/certificates checker/.venv/bin/python -m pytest -q -n 2 --dist worksteal checker/tests

proofs:  ## check the machine proofs with Coq (apt-get install coq libcoq-coquelicot libcoq-interval)
	proofs/run

clean:  ## remove environments and caches; out/ remains, because long measurements are stored there
	rm -rf $(VENV) .venv-flower .venv-spark .venv-dbt checker/.venv benchmarks/.venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
