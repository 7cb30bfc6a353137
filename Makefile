# Two commands do everything: `make run` shows Tidings at work, `make test` checks it. Both set up what is missing first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PY := .venv/bin/python
# With it, each of the many processes that tests start would compile all that it imports once more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run test quick doctor lint types layers unit docs browser faults fuzz long lowest bench bench-full pictures format constraints clean

help: ## this list
	@echo "make ..."
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-14s%s\n", $$1, $$2}'

setup: ## create .venv with the pinned versions and check for Java 17+ (seconds when that is done already)
	@scripts/setup

run: setup ## the demo: a running stream, people, live notifications
	@.venv/bin/tidings demo $(ARGS)

test: setup ## everything that must hold: lint, types, layers, tests (ARGS="-k words" picks tests)
	@scripts/check $(ARGS)

quick: setup ## for every save: lint, types, layers and the fast tests, within a minute
	@scripts/check --only quick $(ARGS)

doctor: setup ## what this machine lacks, and what to do about it
	@.venv/bin/tidings doctor $(ARGS)

lint: setup ## ruff: rules and format
	@scripts/check --only lint

types: setup ## mypy, strict
	@scripts/check --only types

layers: setup ## import-linter: which folder may import which
	@scripts/check --only layers

docs: setup ## the docs' links, examples and completeness
	@$(PY) -m pytest tests/project/test_docs.py $(ARGS)

browser: setup ## the console in a real browser, with what takes longer: all pages in all ways, and a stream on Spark
	@scripts/chromium && $(PY) -m pytest tests/browser -m "long or not long" $(ARGS)

faults: setup ## kill the stream and the whole service with kill -9 again and again (FAULTS=20 times): nothing lost, nothing twice
	@FAULTS=$(or $(FAULTS),20) $(PY) -m pytest -m faults --timeout=3600 $(ARGS)

fuzz: setup ## every parser under mutated inputs (FUZZ_SECONDS=3600 of CPU time), then the property tests a hundred times longer
	@$(PY) -m pip install -q --disable-pip-version-check --only-binary :all: -c constraints.txt --group fuzz || \
	  echo "Atheris has no wheel for this machine: inputs are mutated without its guidance"
	@$(PY) -m fuzz --seconds $(or $(FUZZ_SECONDS),3600) --folder $(or $(FUZZ_FOLDER),.fuzz)
	@HYPOTHESIS_PROFILE=fuzz $(PY) -m pytest -m "not spark and not faults" --timeout=14400 $(ARGS)

long: setup ## the tests that `make test` leaves out: other masters, other plans, public conformance suites
	@$(PY) -m pytest -m long --timeout=3600 $(ARGS)

lowest: setup ## whether the lower bounds of pyproject.toml are true: the lowest versions in a venv of their own, and a smoke test
	@scripts/lowest $(ARGS)

bench: setup ## the benchmark tables, in ten minutes or so
	@$(PY) -m benchmarks $(ARGS)

bench-full: setup ## the benchmark tables at full size, in hours
	@$(PY) -m benchmarks --full $(ARGS)

pictures: setup ## the console's pictures in the docs, taken of the service at work, in twenty minutes
	@$(PY) -m benchmarks.console_pictures $(ARGS)

format: setup ## let ruff write the format and the mends it is sure of
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format .

constraints: setup ## write the versions that are installed now to constraints.txt
	@scripts/constraints

clean: ## remove caches and .venv
	@rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .fuzz
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
