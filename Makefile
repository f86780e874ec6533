# Two commands are all there is to know: `make demo` and `make test`. Both set up .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# How long `make demo` runs, in seconds; empty: until Ctrl-C.
FOR ?=
# What `make bench` runs (ONLY=drain/basic/5000); empty: what has a goal, at 5000 nodes; ALL=1: everything.
ONLY ?=
ALL ?=
# A file that `make bench` draws where the time goes into (FLAME=drain.svg).
FLAME ?=

CODE := src tests tools bench

.PHONY: help demo test test-long check format bench clean

help:  ## This list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## Show the main job on an embedded cluster (FOR=20 ends after 20 seconds).
	@$(BIN)/lowtide demo $(if $(FOR),--for $(FOR))

test: check  ## Format, lint, types, import contracts, and the tests.
	$(BIN)/pytest

test-long: $(READY)  ## The tests that take long: drains, side-by-side runs, long property runs.
	$(BIN)/pytest -m long

check: $(READY)  ## Everything of `make test` but the tests.
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## Put the code into its form.
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(READY)  ## Lowtide beside kube-scheduler on real parts, and its own costs (ONLY=drain/basic/5000, ALL=1).
	$(BIN)/python bench $(if $(ONLY),--only $(ONLY)) $(if $(ALL),--all) $(if $(FLAME),--flame $(FLAME))

clean:  ## Remove the environment and all caches (the real parts stay in their cache).
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lowtide needs Python 3.11 or later, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
