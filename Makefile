# Two commands for everybody: `make run` and `make test`. Both set up what they need.
# PYTHON chooses the interpreter; pip's own configuration chooses the package registry.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cksum < pyproject.toml | cut -d' ' -f1)

.PHONY: run test test-gpu bench bench-gpu lint types coverage torch cuda clean help

help:
	@echo "make run       explore the catalogue, print the table, write build/report/"
	@echo "make test      the tests, in parallel"
	@echo "make bench     the benchmarks: ratios, side by side in one run"
	@echo "make test-gpu  the CUDA kernels on a GPU, if there is one (make cuda first)"
	@echo "make bench-gpu the CUDA kernels measured, if there is a GPU"
	@echo "make lint      ruff: style and format"
	@echo "make types     mypy, strict"
	@echo "make coverage  the tests under branch coverage"
	@echo "make torch     install the extra that the comparison with torch needs"
	@echo "make cuda      install the extra that CUDA kernels need, with and without a GPU"
	@echo "make clean     remove the environment and everything that was built"

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@rm -f $(VENV)/.installed-*
	@touch $@

run: $(STAMP)
	$(BIN)/everyorder run --report build/report

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

test-gpu: $(STAMP)
	$(BIN)/python -m pytest -n0 -rs tests/cuda

bench: $(STAMP)
	$(BIN)/python -m tests.bench --write README.md

bench-gpu: $(STAMP)
	$(BIN)/python -m tests.cuda.bench --write tests/bench/results/gpu.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n auto
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -q -n auto tests/kernels
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95

torch: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"

cuda: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cuda]"

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .everyorder
