# Two commands for everybody: `make run` and `make test`. Both set up what they need.
# PYTHON chooses the interpreter; pip's own configuration chooses the package registry.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cksum < pyproject.toml | cut -d' ' -f1)

.PHONY: run test bench lint types coverage torch clean help

help:
	@echo "make run       explore the catalogue, print the table, write build/report/"
	@echo "make test      the tests, in parallel"
	@echo "make bench     the benchmarks: ratios, side by side in one run"
	@echo "make lint      ruff: style and format"
	@echo "make types     mypy, strict"
	@echo "make coverage  the tests under branch coverage"
	@echo "make torch     install the extra that the comparison with torch needs"
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

bench: $(STAMP)
	$(BIN)/python -m tests.bench --write README.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n auto
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95

torch: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .everyorder
