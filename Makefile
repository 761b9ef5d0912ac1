# Two commands for everybody: `make run` and `make test`. Both set up what they need.
# PYTHON chooses the interpreter; pip's own configuration chooses the package registry.

PYTHON ?= python3
VENV ?= .venv
# Files with tests beside torch; the longest first.
OF_TORCH = tests/torch $(shell grep -rl --include='test_*.py' 'mark\.torch' tests \
	| grep -v ^tests/torch | sort)
# How the tests are run, and those of the rest; under coverage by `make coverage`.
RUN ?= -m pytest
RUN_REST ?= $(RUN)
# In a process for each core; who has nothing left to do takes over from the others.
PARALLEL := -n auto --dist worksteal
# Of tests that repeat one claim over every operator, dtype, layout or registry:
# `--thin` for one in so many (see conftest.py), `--thinned` for the others, or all; the
# others are run together with what is marked as long, and the gate with them.
SHARE ?=
OTHER_SHARE := --thinned -m "long or not long"
# What is imported is compiled then, and most of what is installed never is.
QUIETLY := --quiet --disable-pip-version-check --no-compile
# Which ones; all, unless somebody says otherwise.
TESTS ?=
# What explores looks through all that is loaded, and forks it: these run by themselves,
# in small processes, without the runtime.
FORKING := tests/child tests/cli tests/plugin
EXPLORING := tests/engine tests/expectations tests/report tests/heap
# The zoo collects garbage all the time: the less is loaded, the faster.
ZOO := tests/zoo
# Where scenarios are made, and what of it needs the runtime, which is large.  What
# follows objects of the runtime comes late in small processes, and what loads all of
# the runtime after it.
OF_DISPATCHERS := $(addprefix tests/scenario/test_,condensed.py dispatcher.py \
	effects.py exploring.py fronts.py leftovers.py recorder.py registrations.py \
	scenario.py uses.py)
FOLLOWING := tests/scenario/test_created.py tests/scenarios/test_teaching.py
# What makes scenarios of registries, and what is explored of others', likewise.
OTHERS := $(filter-out $(OF_DISPATCHERS) $(FOLLOWING), \
	$(wildcard tests/scenario/test_*.py)) \
	tests/scenarios/test_registries.py tests/examples/test_any_registry.py \
	$(FOLLOWING) tests/test_readme.py
# What is explored of the runtime.
CATALOGUE := tests/scenarios tests/mutants tests/pairs tests/examples tests/scenario
# What loads the runtime while it is collected, and follows objects: long, and alone.
FOLLOWED := tests/scenarios/test_verdicts_followed.py
# What compiles most kernels; coverage sees nothing of them, and makes compiling slow.
KERNELS := tests/kernels tests/opinfo
# Many tests start processes, which need not compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cksum < pyproject.toml | cut -d' ' -f1)

.PHONY: run test test-shares test-forking test-exploring test-catalogue test-kernels test-rest test-long \
	test-whole test-extras test-gpu bench bench-gpu lint types coverage coverage-report torch cuda \
	clean help

help:
	@echo "make run       explore the catalogue, print the table, write build/report/"
	@echo "make test      the tests, in parallel; of those that repeat one claim, some"
	@echo "make bench     the benchmarks: ratios, side by side in one run"
	@echo "make test-long the others, the zoo, mutants, all strategies, the whole catalogue"
	@echo "make test-whole  20,000 generated programs, and what else takes longest"
	@echo "make test-extras  what needs the extras torch and cuda; some kernels uncompiled"
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
	$(BIN)/python -m pip install $(QUIETLY) -e ".[dev]"
	@rm -f $(VENV)/.installed-*
	@touch $@

run: $(STAMP)
	$(BIN)/everyorder run --report build/report

ifeq ($(strip $(TESTS)),)
test:
	$(MAKE) test-shares SHARE=--thin
else
test: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) $(TESTS)
endif

test-shares: test-forking test-exploring test-catalogue test-kernels test-rest

test-forking: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(FORKING)

test-exploring: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(EXPLORING)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(ZOO)

test-catalogue: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(OTHERS)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(CATALOGUE) \
		$(addprefix --ignore=,$(OTHERS) $(FOLLOWED))

test-kernels: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) $(SHARE) $(KERNELS)

test-rest: $(STAMP)
	$(BIN)/python $(RUN_REST) $(PARALLEL) $(SHARE) \
		$(addprefix --ignore=,$(FORKING) $(EXPLORING) $(ZOO) $(OTHERS) $(CATALOGUE) $(KERNELS))

ifeq ($(strip $(TESTS)),)
test-long:
	$(MAKE) test-shares SHARE='$(OTHER_SHARE)'
	$(BIN)/python $(RUN) $(PARALLEL) -m long $(FOLLOWED)
	$(BIN)/everyorder gate
else
test-long: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) -m long $(TESTS)
endif

# What `make test-long` plays some of: all programs of the generators.  Each takes its
# minutes, on a busy machine more of them than what hangs is given elsewhere.
test-whole: $(STAMP)
	$(BIN)/python $(RUN) $(PARALLEL) -o faulthandler_timeout=1800 -m whole \
		tests/script tests/rpc tests/scenarios/test_verdicts.py

test-extras: $(STAMP)
	$(BIN)/python -m pytest -q $(PARALLEL) -m torch $(OF_TORCH)
	$(BIN)/python -m pytest -q $(PARALLEL) tests/cuda/test_compile.py
	$(BIN)/python $(RUN) $(PARALLEL) --ignore=tests/cuda/test_compile.py tests/cuda \
		tests/operators/test_factories.py
	NUMBA_DISABLE_JIT=1 $(BIN)/python $(RUN) $(PARALLEL) --thin -m "not torch" tests/kernels

test-gpu: $(STAMP)
	EVERYORDER_ALL_KERNELS=1 $(BIN)/python -m pytest -n0 -rs tests/cuda

bench: $(STAMP)
	$(BIN)/python -m tests.bench --write docs/speed.md

bench-gpu: $(STAMP)
	$(BIN)/python -m tests.cuda.bench --write tests/bench/results/gpu.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Compiled bodies are not seen by coverage: kernels run uncompiled, too.
COVERED := -m coverage run -m pytest -q
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(MAKE) test-shares test-extras RUN="$(COVERED)"
	$(MAKE) coverage-report

# Of what is to be covered; all of it, unless somebody says otherwise.
COVERS ?=
coverage-report: $(STAMP)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95 $(addprefix --include=,$(COVERS))

torch: $(STAMP)
	$(BIN)/python -m pip install $(QUIETLY) "torch==2.13.0"

cuda: $(STAMP)
	$(BIN)/python -m pip install $(QUIETLY) -e ".[cuda]"

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .everyorder
