# Everything works on a fresh clone: what is missing is installed into .venv first, and only when it has changed.

PYTHON ?= python3
BIN := .venv/bin
# -qq still shows errors. --no-compile: most modules of torch and its like are never imported, and compiling all of them
# takes longer (45 s on two cores) than compiling, once, those that are: importing tensorflow takes 11 s uncompiled, 5 s compiled.
PIP := $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check --constraint constraints.txt
SOURCES := profiler loaders models
SCENARIO ?= scenarios/ssd.yaml
# A machine with a GPU may have a Python of its own that knows it: .venv's is taken only where .venv is.
GPU_PYTHON ?= $(shell test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON))

.DEFAULT_GOAL := help
.PHONY: help run test lint format types wheel gpu bench overhead traced accuracy cases long clean

help:                   ## what there is to make
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

.venv/bin/pip:
	$(PYTHON) -m venv .venv

# .venv/run: what a run needs. .venv/dev: what checks and tests need besides.
.venv/run: pyproject.toml constraints.txt | .venv/bin/pip
	@echo "installing stallscope with torch and tensorflow into .venv ..."
	@$(PIP) --editable '.[torch,tensorflow]'
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c 'import torch, tensorflow' 2> /dev/null
	@touch $@

.venv/dev: .venv/run
	@echo "installing the development tools into .venv ..."
	@$(PIP) --editable '.[torch,tensorflow,dev]'
	@touch $@

run: .venv/run          ## run a scenario and draw its report: SCENARIO=scenarios/ram.yaml
	$(BIN)/python -m profiler run $(SCENARIO)

test: .venv/dev         ## all tests that this machine can run; the others say what they need
	$(BIN)/python -m pytest -n 2 --dist loadfile --ignore tests/truth
	$(BIN)/python -m pytest tests/truth

lint: .venv/dev         ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/dev       ## ruff: mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/dev        ## mypy --strict
	$(BIN)/mypy

wheel: .venv/dev        ## dist/*.whl, compared with the tree and used beside a user's own models/
	rm -rf build dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist > /dev/null
	$(BIN)/python -m pytest tests/test_wheel.py
	@ls dist/*.whl

gpu:                    ## all checks that need a GPU, in a table; installs nothing: GPU_PYTHON=python3.12
	@$(GPU_PYTHON) tests/gpu/run.py

bench: .venv/dev        ## what recording costs on this machine
	$(BIN)/python benchmarks/recording.py

overhead: .venv/dev     ## what recording costs beside torch.profiler and py-spy; most of an hour
	$(BIN)/python benchmarks/overhead.py

traced: .venv/dev       ## what trace costs a program, and a million steps under it; some minutes
	$(BIN)/python benchmarks/traced.py

long: .venv/dev         ## a million steps: what memory, disk and reports take; some minutes
	$(BIN)/python benchmarks/long_run.py

accuracy: .venv/dev     ## injected causes against found stages, and docs/accuracy.md; half an hour on a quiet machine
	$(BIN)/python benchmarks/accuracy/run.py

cases: .venv/dev        ## reported faults and their healthy twins, traced: figures and causes in a table; half an hour
	$(BIN)/python tests/cases/check.py

clean:                  ## all that make has made
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(SOURCES) scenarios tests -name __pycache__ -type d -prune -exec rm -rf {} +
