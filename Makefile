# Needs Python 3.11, 3.12 or 3.13 and make; pip fetches the rest.
VENV ?= .venv
BIN := $(VENV)/bin
# A file of versions for pip: with constraints.txt the tested ones are installed.
CONSTRAINTS ?=
# Another index for torch and torchvision, such as that of their builds without CUDA, 4 GB smaller.
TORCH_INDEX ?=
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	$(if $(TORCH_INDEX),--extra-index-url '$(TORCH_INDEX)') \
	$(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench constraints clean

help: ## say what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name what; do printf 'make %-11s %s\n' "$$name" "$$what"; done
	@echo 'VENV=$(VENV) is where it is installed.'
	@echo 'CONSTRAINTS=constraints.txt installs the versions that were tested.'
	@echo "TORCH_INDEX=ADDRESS takes torch from there; PyTorch's site has one of builds without CUDA."

demo: $(VENV)/.installed-demo ## install, run the chain on the embedded data, say where the report is
	$(BIN)/cppcl run emoji --workspace .cppcl

test: $(VENV)/.installed-dev ## install, then run the tests, import rules among them, with coverage
	OMP_NUM_THREADS=1 $(BIN)/python tests/compile_kernels.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal \
		--cov=cppcl --cov=storage --cov-fail-under=98

lint: $(VENV)/.installed-dev ## ruff, mypy and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs ## build the pages; broken links and references are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo 'file://$(CURDIR)/build/docs/index.html'

# Some machines override OpenBLAS's choice of kernels, which would slow the peers.
BENCH := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python

bench: $(VENV)/.installed-bench ## every benchmark, one after the other; the learner's in bench.json
	@set -e; for name in coding pacing training; do \
		echo "== $$name"; $(BENCH) tests/benchmarks/learner/bench_$$name.py --json bench.json; \
	done; \
	for name in features descriptors curricula storage serve scaling; do \
		echo "== $$name"; OMP_NUM_THREADS=1 $(BENCH) tests/benchmarks/bench_$$name.py; \
	done

constraints: $(VENV)/.installed-dev ## write constraints.txt: the versions that are installed here
	$(BIN)/python .ci/constraints.py constraints.txt

clean: ## remove caches and builds; the installation and the workspace .cppcl stay
	rm -rf build dist *.egg-info .coverage htmlcov .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis .import_linter_cache
	find . -path ./.git -prune -o -path './$(VENV)' -prune -o -name __pycache__ -type d \
		-prune -exec rm -rf {} +

# An installation is made once, and again when pyproject.toml changes.
$(VENV)/.installed-demo: pyproject.toml | $(BIN)/pip
	@echo 'Installing into $(VENV): a few minutes and about 7 GB (without CUDA 3) the first time.'
	$(PIP_INSTALL) '.[demo]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/pip
	@echo 'Installing into $(VENV): a few minutes and about 7 GB (without CUDA 3) the first time.'
	$(PIP_INSTALL) '.[demo,dev]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/pip
	$(PIP_INSTALL) '.[docs]'
	@touch $@

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/pip
	$(PIP_INSTALL) '.[demo,dev,bench]'
	@touch $@

$(BIN)/pip:
	@for python in python3.11 python3.12 python3.13 python3; do \
		if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
			2>/dev/null; then exec $$python -m venv '$(VENV)'; fi; \
	done; \
	echo 'cppcl needs Python 3.11, 3.12 or 3.13: none of python3.11, python3.12, python3.13 and' \
		'python3 on the PATH is one. Install one, or put it on the PATH, and run make again.' >&2; \
	exit 1
