# Entry points for people and CI. Python >= 3.11 is all that `make demo` and `make test` need; they set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo demo-experiment test shim-test node-test lint format manifests lock gpu-check bench cluster-test cluster-test-full clean

help: ## show what there is to make
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "gpu-reclaim needs Python 3.11 or newer; this is " + sys.version.split()[0] + "; name another with PYTHON=python3.12")'
	@echo "setting up $(VENV): once, a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## the sweep on a simulated cluster: verdicts, GPUs given back
	@$(BIN)/gpu-reclaim demo

demo-experiment: $(STAMP) ## the termination experiment, simulated: expected, measured
	@$(BIN)/gpu-reclaim experiment zombie --local --inject all

test: $(STAMP) ## unit tests, manifests, local runs; no root, GPU, cluster
	$(BIN)/python -m pytest -n auto

shim-test: $(STAMP) ## pynvml against the simulated NVML library (gcc, Linux)
	$(BIN)/python -m pytest tests/shim

node-test: $(STAMP) ## real processes and devices (root; Debian: installs inits)
	$(BIN)/python -m pytest tests/node

lint: $(STAMP) ## ruff, mypy --strict, import contracts, rendered files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m workflows.render --check
	$(BIN)/python -m sensors.render --check

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

manifests: $(STAMP) ## render all manifests and docs/steps.md from the Python
	$(BIN)/python -m workflows.render
	$(BIN)/python -m sensors.render

lock: $(STAMP) ## pin all dependencies anew, with hashes
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--strip-extras --output-file requirements/steps.txt pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--strip-extras --allow-unsafe --extra people --extra workflows --extra lab --extra dev \
		--constraint requirements/steps.txt --output-file requirements/dev.txt pyproject.toml

gpu-check: $(STAMP) ## what an NVIDIA driver answers (or a simulated one), 4 min
	$(BIN)/python -m experiments.gpu_check

bench: $(STAMP) ## ratios, side by side: a table, and build/bench.json
	$(BIN)/python -m tests.bench

cluster-test: $(STAMP) ## a real Kubernetes and Argo on this machine (root, Debian)
	$(BIN)/python -m pytest tests/cluster -m "not repeat"

cluster-test-full: $(STAMP) ## the same with repetitions and all faults
	$(BIN)/python -m pytest tests/cluster

clean: ## remove what was built in the checkout
	rm -rf build $(VENV)
