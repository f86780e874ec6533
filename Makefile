# Two commands are all there is to know: `make demo` and `make test`. Both set up .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# How long `make demo` runs, in seconds (empty: until Ctrl-C), and `make soak` (empty: an hour).
FOR ?=
# What `make bench` runs (ONLY=drain/basic/5000); empty: drains, decisions, traffic and start at 5000 nodes; ALL=1: everything.
ONLY ?=
ALL ?=
# A file that `make bench` draws where the time goes into (FLAME=drain.svg).
FLAME ?=

# Of the image: where it is pushed to (REGISTRY=registry.example/team), and its tag.
REGISTRY ?=
TAG ?= $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE := $(if $(REGISTRY),$(REGISTRY)/)lowtide:$(TAG)
PLATFORMS ?= linux/amd64,linux/arm64
ENGINE ?= $(shell docker buildx version >/dev/null 2>&1 && echo docker || (command -v podman >/dev/null && echo podman))

# What `make test-versions` runs on; other versions are built where their modules can be had.
VERSIONS ?= v1.28.2 v1.34.10 v1.35.4 v1.36.4 v1.37.1

CODE := src tests tools bench

NEED_ENGINE = test -n '$(ENGINE)' || { echo 'An image is built by docker with buildx, or by podman, and neither is here: install one of them' >&2; exit 1; }

.PHONY: help demo test test-long test-faults test-versions soak check format bench bench-plots deploy-files docs-files sbom build-image push-image clean

help:  ## This list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY)  ## Show the main job on an embedded cluster (FOR=20 ends after 20 seconds).
	@$(BIN)/lowtide demo $(if $(FOR),--for $(FOR))

test: check  ## Format, lint, types, import contracts, and the tests.
	$(BIN)/pytest

test-long: $(READY)  ## The tests that take long: drains, side-by-side runs, long property runs.
	$(BIN)/pytest -m long

test-faults: $(READY)  ## Break every part of a real cluster while the scheduler works, some 20 minutes.
	cd tools && ../$(BIN)/python -m faults

test-versions: $(READY)  ## The tests of the whole on each version of Kubernetes, some 10 minutes each (VERSIONS='v1.28.2 v1.37.1').
	@failed=; for version in $(VERSIONS); do \
	  echo "Kubernetes $$version"; \
	  CI=true $(BIN)/pytest tests/integration tests/real -m 'versions and real' --kubernetes=$$version || failed="$$failed $$version"; \
	done; test -z "$$failed" || { echo "Failed on$$failed" >&2; exit 1; }

soak: $(READY)  ## An hour of nodes and pods that come and go: memory, descriptors, tasks (FOR=600).
	cd tools && ../$(BIN)/python -m soak $(if $(FOR),--for $(FOR))

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

bench-plots: $(READY)  ## Draw what `make bench` found into docs/ (ONLY=growth and drains).
	$(BIN)/python bench/plots.py

deploy-files: $(READY)  ## Make anew what is made of others: permissions, rendered manifests, the table of permissions.
	$(BIN)/python tools/deploy_files.py

docs-files: $(READY)  ## Make anew the pages that are made of code: the configuration, the dependencies.
	$(BIN)/python tools/configuration_reference.py
	$(BIN)/python tools/dependencies.py page

sbom: $(READY)  ## Write what an installation brings along to dist/lowtide.cdx.json (CycloneDX).
	@$(BIN)/python tools/dependencies.py sbom

build-image:  ## Build the image for this machine (REGISTRY=..., TAG=...).
	@$(NEED_ENGINE)
ifeq ($(ENGINE),podman)
	podman build --tag $(IMAGE) .
else
	docker buildx build --load --tag $(IMAGE) .
endif

push-image:  ## Build the image for amd64 and arm64, and push it (REGISTRY=..., TAG=...).
	@$(NEED_ENGINE)
	@test -n '$(REGISTRY)' || { echo 'make push-image needs to know where to: REGISTRY=registry.example/team' >&2; exit 1; }
ifeq ($(ENGINE),podman)
	podman build --platform $(PLATFORMS) --manifest $(IMAGE) .
	podman manifest push --all $(IMAGE)
else
	docker buildx build --platform $(PLATFORMS) --push --tag $(IMAGE) .
endif

clean:  ## Remove the environment and all caches (the real parts stay in their cache).
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lowtide needs Python 3.11 or later, this is " + sys.version.split()[0] + "; try make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
