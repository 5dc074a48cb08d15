# Every target sets up what it needs in .venv; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

$(READY): requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; limen needs Python 3.11 or later"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "limen needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@echo "setting up .venv (a minute or two, once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

.PHONY: help demo test bench reproduce lint format lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(READY) ## a million standing queries, a stream of events, queries that come and go
	@$(BIN)/limen demo

# Tests on Spark wait a good part of their time, so the others run beside them.
ON_SPARK := tests/spark tests/cli

test: $(READY) ## all tests: those on Spark, and beside them the others, compiled and then as plain Python
	@$(BIN)/python -m pytest $(ON_SPARK) > .venv/on-spark.txt 2>&1 & on_spark=$$!; failed=0; \
	$(BIN)/python -m pytest $(addprefix --ignore=,$(ON_SPARK)) || failed=1; \
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/kernels tests/indexes tests/borders tests/partitions tests/engine || failed=1; \
	echo "waiting for the tests on Spark"; \
	wait $$on_spark || failed=1; cat .venv/on-spark.txt; exit $$failed

bench: $(READY) ## every benchmark against its rivals (about 30 minutes; QUICK=1 for a short run)
	@for name in stab growth update catalog partitions archive spark-match crossings; do $(BIN)/limen bench $$name $(if $(QUICK),--quick) || exit 1; done

reproduce: $(READY) ## the papers' claims, measured: out/reproduce (about 45 minutes; QUICK=1 for a short run)
	@$(BIN)/limen reproduce $(if $(QUICK),--quick,--full)

lint: $(READY) ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## rewrite the sources in the house style
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(READY) ## resolve the dependencies anew into requirements.txt
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--extra dev --extra plot --extra rivals --extra spark --extra connect --output-file requirements.txt pyproject.toml

clean: ## remove what the other targets made
	@rm -rf .venv out dist .hypothesis .pytest_cache .mypy_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
