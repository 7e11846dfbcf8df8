# `make test`, `make demo` and the rest set themselves up; nothing has to be run before them.
# Each stamp lies in .venv, so that removing the environment removes its stamps.

VENV := .venv
PY := $(VENV)/bin/python
# The first interpreter on this machine that is new enough; `make PYTHON=... setup` names another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PIP := $(PY) -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt --editable

# One thread for each test process: pytest-xdist already uses every core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
QUICK := not slow and not fuzz and not opdb
TESTS ?= tests
PYTEST_ARGS ?=
# How many random programs `make fuzz` runs, and from which seed.
PROGRAMS ?= 100000
SEED ?= 0
# Options and names of measurements for `make bench`; --write puts the tables into docs/performance.md.
BENCH ?=

.PHONY: help setup demo test check lint types ops-page docs docs-serve fuzz soak opdb bench clean

help:
	@echo "make setup    environment in .venv with the torch, demo and test extras"
	@echo "make demo     solve Burgers' equation (needs NumPy and the demo extra only)"
	@echo "make test     the quick tests; TESTS=tests/layout PYTEST_ARGS=-x narrows them"
	@echo "make check    linter, both type checkers, documentation build"
	@echo "make fuzz     random programs against the model; PROGRAMS=n SEED=s"
	@echo "make soak     the slow tests"
	@echo "make opdb     all samples of torch's own database of operations"
	@echo "make bench    measure speed"
	@echo "make ops-page write the pages that are made from the op table"
	@echo "make docs     build the documentation into site/"
	@echo "make clean    remove caches and build outputs; the environment stays"

$(VENV)/stamp-venv:
	@test -n "$(PYTHON)" || { echo "nestgrad needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/stamp-demo: $(VENV)/stamp-venv pyproject.toml constraints.txt
	$(INSTALL) '.[demo]'
	@touch $@

$(VENV)/stamp-test: $(VENV)/stamp-venv pyproject.toml constraints.txt
	$(INSTALL) '.[torch,demo,test,docs]'
	@touch $@

$(VENV)/stamp-dev: $(VENV)/stamp-test
	$(INSTALL) '.[dev]'
	@touch $@

$(VENV)/stamp-bench: $(VENV)/stamp-test
	$(INSTALL) '.[bench]'
	@touch $@

setup: $(VENV)/stamp-test

demo: $(VENV)/stamp-demo
	$(PY) examples/burgers.py

test: $(VENV)/stamp-test
	$(ONE_THREAD) $(PY) -m pytest -n auto -m "$(QUICK)" $(PYTEST_ARGS) $(TESTS)

check: lint types docs

lint: $(VENV)/stamp-dev
	$(PY) -m ruff check

types: $(VENV)/stamp-dev
	$(PY) tools/check_types.py

ops-page: $(VENV)/stamp-test
	$(PY) tools/ops_page.py

docs: $(VENV)/stamp-test
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

docs-serve: $(VENV)/stamp-test
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs serve

fuzz: $(VENV)/stamp-test
	$(ONE_THREAD) NESTGRAD_FUZZ_PROGRAMS=$(PROGRAMS) NESTGRAD_FUZZ_SEED=$(SEED) \
		$(PY) -m pytest -n auto -m fuzz $(PYTEST_ARGS) $(TESTS)

soak: $(VENV)/stamp-test
	$(ONE_THREAD) $(PY) -m pytest -n auto -m slow $(PYTEST_ARGS) $(TESTS)

opdb: $(VENV)/stamp-test
	$(ONE_THREAD) NESTGRAD_OPDB_WRITE=1 $(PY) -m pytest -n auto -m opdb $(PYTEST_ARGS) tests/opdb
	$(PY) tools/ops_page.py

bench: $(VENV)/stamp-bench
	$(ONE_THREAD) $(PY) -m benchmarks.run $(BENCH)

clean:
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	find src levels backends tests examples benchmarks docs tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
