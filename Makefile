# Two commands for everybody: `make run` and `make test`. Both set up what they need.
# PYTHON chooses the interpreter; pip's own configuration chooses the package registry.

PYTHON ?= python3
VENV ?= .venv
# Files with tests beside torch; the longest first.
OF_TORCH = tests/torch $(shell grep -rl --include='test_*.py' 'mark\.torch' tests \
	| grep -v ^tests/torch | sort)
# How the tests are run, and those of the runtime; under coverage by `make coverage`.
RUN ?= -m pytest
RUN_COVERED ?= $(RUN)
# So many processes at once: half as many again as there are cores, since a fifth of the
# time of tests is waiting, for processes, threads and sockets.
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
JOBS ?= $(shell echo $$(( $(CORES) + ($(CORES) + 1) / 2 )))
# Each leg is one process; a leg is told when it ends, and one that fails stops no other.
AT_ONCE := $(MAKE) -j$(JOBS) -k --output-sync=target --no-print-directory
# Of tests that repeat one claim over every operator, dtype, layout or registry:
# `--thin` for one in so many (see conftest.py), `--thinned` for the others, or all; the
# others are run together with what is marked as long, and the gate with them.
SHARE ?=
OTHER_SHARE := --thinned -m "slow or not slow"
BOTH_SHARES := --both -m "slow or not slow"
# What is imported is compiled then, and most of what is installed never is.
QUIETLY := --quiet --disable-pip-version-check --no-compile
# Which ones; all, unless somebody says otherwise.
TESTS ?=
# Whether `make test` runs those of `make test-long`, too: each leg once.
LONG ?=
# The end of a recipe that runs TESTS; pytest ends with 5 if it runs no test.
EXPLAIN = { ended=$$?; [ $$ended != 5 ] || echo "no test was run at $(TESTS): tests marked\
	slow need LONG=1, nightly ones \`make test-whole\`, those of torch \`make torch\`;\
	\`make test-long\` runs slow tests only"; exit $$ended; }

# Legs that are not watched by coverage.  What explores looks through all that is loaded,
# and forks it: it runs in small processes, without the runtime.
LEG_cli := tests/cli tests/mistakes
LEG_plugin := tests/pytest_plugin tests/processes
LEG_engine := tests/engine tests/expectations tests/report
LEG_state := tests/state
# The zoo collects garbage all the time: the less is loaded, the faster.
LEG_zoo := tests/zoo tests/reported
# Where scenarios are made, and what of it needs the runtime, which is large.  What
# follows objects of the runtime comes late in small processes, and what loads all of
# the runtime after it.
OF_DISPATCHERS := tests/systems/test_dispatcher.py \
	$(addprefix tests/scenario_api/test_,call_stubs.py \
	effects.py exploring.py recorder.py registrations.py scenario.py uses.py)
FOLLOWING := tests/scenario_api/test_created.py tests/scenarios/test_teaching.py \
	tests/scenarios/test_extension_points.py
# What makes scenarios of registries, and what is explored of others', likewise.
LEG_registries := $(filter-out $(OF_DISPATCHERS) $(FOLLOWING), \
	$(wildcard tests/scenario_api/test_*.py)) \
	tests/scenarios/test_registries.py tests/examples/test_any_registry.py \
	tests/strategies/test_any_registry.py \
	$(FOLLOWING)
# The programs and commands of README.md and docs/, each a process.
LEG_documents := tests/test_documents.py
# Lazy state, values that are new each time: each exploration begins in many processes.
LEG_systems := $(filter-out $(OF_DISPATCHERS), $(wildcard tests/systems/test_*.py)) \
	tests/stability
# What loads the runtime while it is collected, and follows objects: long, and alone.
LEG_followed := tests/scenarios/test_verdicts_followed.py
# Legs of long tests only.  The short share leaves them out: pytest ends with an error if
# it runs no test, and that of any other leg is a mistake.
LONG_ONLY := followed
# What is explored of the runtime.
LEG_catalogue := tests/scenarios tests/scenario_api tests/strategies tests/systems $(addprefix --ignore=,$(LEG_registries) \
	$(LEG_systems) $(LEG_followed))
LEG_mutants := tests/mutants tests/pairs
LEG_examples := tests/examples --ignore=tests/examples/test_any_registry.py
# What compiles most kernels; coverage sees nothing of them, and makes compiling slow.
LEG_kernels := tests/kernels
UNWATCHED := documents zoo mutants kernels registries state systems cli engine catalogue followed \
	plugin examples

# Legs that are watched; the last one is all that is in no other.
LEG_compiler := tests/script/emission tests/script/frontend tests/script/passes \
	tests/script/archive
LEG_script := tests/script $(addprefix --ignore=,$(LEG_compiler))
LEG_rpc := tests/rpc
LEG_operators := tests/operators tests/autograd tests/tensors
# The sample table is the one oracle of operators.
LEG_opinfo := tests/opinfo
LEG_rest := tests $(addprefix --ignore=,$(filter tests/%,$(foreach leg,$(UNWATCHED) \
	compiler script rpc operators opinfo,$(LEG_$(leg)))))
WATCHED := rpc rest operators opinfo script compiler
# The legs that are run.
LEGS = $(filter-out $(if $(strip $(LONG)),,$(LONG_ONLY)),$(WATCHED) $(UNWATCHED))
# Where the legs write their results, and the line that ends a recipe of legs: the sums
# of all of them, and failure if `make` failed, a gate among others, or a test did.
RESULTS := build/legs
SUMMARISE = ended=$$?; $(BIN)/python -m tests.tools.summary $(RESULTS) \
	$(LEGS) && exit $$ended

# Many tests start processes, which need not compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cat pyproject.toml constraints.txt | cksum | cut -d' ' -f1)
# The lock file counts for the Python version in its first line, "# python X.Y": another
# version may need other packages, and gets the newest that pyproject.toml allows.
LOCKED := $(shell sed -n 's/^\# python //p' constraints.txt)
VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
CONSTRAINTS = $(if $(filter $(LOCKED),$(VERSION)),-c constraints.txt)
# Files that are made from declarations, and committed.
GENERATED := runtime/declared.pyi docs/deviations.md docs/language.md \
	runtime/kernels/common_kernels.txt

.PHONY: run test test-legs test-long gate \
	test-whole test-extras test-gpu bench bench-gpu lint types coverage coverage-report torch cuda \
	libraries docs \
	generate generate-declared generated-check lock clean help

help:
	@echo "make run       explore the catalogue, print the table, write build/report/"
	@echo "make test      the tests, in parallel; of those that repeat or explore, some"
	@echo "make bench     the benchmarks: ratios, side by side in one run"
	@echo "make test-long most of the others, the zoo, mutants, all strategies, the gate"
	@echo "make test LONG=1  both, each leg once, and the gate as one of the legs"
	@echo "make test-whole  the rest, 20,000 generated programs, what else takes longest"
	@echo "make test-extras  what needs the extras torch and cuda; some kernels uncompiled"
	@echo "make test-gpu  the CUDA kernels on a GPU, if there is one (make cuda first)"
	@echo "make bench-gpu the CUDA kernels measured, if there is a GPU"
	@echo "make lint      ruff: style and format"
	@echo "make types     mypy, strict"
	@echo "make generate  write the stubs and generated pages again"
	@echo "make generated-check  the same, and fail where git has another text"
	@echo "make lock      renew constraints.txt with the newest allowed versions"
	@echo "make coverage  the tests under branch coverage"
	@echo "make torch     install the extra that the comparison with torch needs"
	@echo "make cuda      install the extra that CUDA kernels need, with and without a GPU"
	@echo "make docs      build the documentation into build/site, warnings are errors"
	@echo "make libraries  explore real libraries, in an environment of their own"
	@echo "make clean     remove the environment and everything that was built"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUIETLY) $(CONSTRAINTS) -e ".[dev]"
	@rm -f $(VENV)/.installed-*
	@touch $@

run: $(STAMP)
	$(BIN)/everyorder run --report build/report

ifeq ($(strip $(TESTS)),)
test: $(STAMP)
	@rm -rf $(RESULTS)
ifeq ($(strip $(LONG)),)
	$(AT_ONCE) test-legs SHARE=--thin; $(SUMMARISE)
else
	$(AT_ONCE) test-legs gate SHARE='$(BOTH_SHARES)'; $(SUMMARISE)
endif
else
test: $(STAMP)
	$(BIN)/python $(RUN) -n auto --dist worksteal \
		$(if $(strip $(LONG)),-m "slow or not slow") $(TESTS) || $(EXPLAIN)
endif

# Those that take longest begin first: none is then waited for by all others.
test-legs: $(addprefix leg-,$(LEGS))

leg-%: $(STAMP)
	$(BIN)/python $(if $(filter $*,$(WATCHED)),$(RUN_COVERED),$(RUN)) $(SHARE) $(LEG_$*) \
		-o junit_family=xunit1 --junitxml=$(RESULTS)/$*.xml

ifeq ($(strip $(TESTS)),)
test-long: LONG := 1
test-long: $(STAMP)
	@rm -rf $(RESULTS)
	$(AT_ONCE) test-legs LONG=1 SHARE='$(OTHER_SHARE)'; $(SUMMARISE)
	$(MAKE) gate
else
test-long: $(STAMP)
	$(BIN)/python $(RUN) -n auto --dist worksteal -m slow $(TESTS) || $(EXPLAIN)
endif

gate: $(STAMP)
	$(BIN)/everyorder gate

# What `make test-long` plays some of: all programs of the generators, all tests that
# repeat one claim.  Some take minutes, on a busy machine more of them than what hangs
# is given elsewhere.
test-whole: $(STAMP)
	$(AT_ONCE) $(addprefix whole-,$(WATCHED) $(UNWATCHED))

# pytest ends with 5 if a leg has none.
whole-%: $(STAMP)
	$(BIN)/python $(RUN) -o faulthandler_timeout=1800 --night -m nightly $(LEG_$*) \
		|| [ $$? = 5 ]

# What needs the extras: the real torch; CUDA as cubins, and in the simulator.
test-extras: $(STAMP)
	$(AT_ONCE) test-torch test-cubins test-simulator test-uncompiled

test-torch: $(STAMP)
	$(BIN)/python -m pytest -q -m torch $(OF_TORCH)

test-cubins: $(STAMP)
	$(BIN)/python -m pytest -q tests/cuda/test_compile.py

test-simulator: $(STAMP)
	$(BIN)/python $(RUN) --ignore=tests/cuda/test_compile.py tests/cuda \
		tests/operators/test_creation.py

test-uncompiled: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python $(RUN) --thin -m "not torch" tests/kernels

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

generate: generate-declared
	$(BIN)/python -m tests.tools.documents --write

# What a test of the pages does not compare already.
generate-declared: $(STAMP)
	$(BIN)/python -m tests.tools.stub --write
	$(BIN)/python -m tests.tools.deviations
	$(BIN)/python -m tests.tools.common_kernels --write
	$(BIN)/python -m tests.tools.language everyorder.runtime.rpc.api > docs/language.md

generated-check: generate-declared
	git diff --exit-code -- $(GENERATED)

# An empty environment, so that only the packages of the project are locked. An entry with
# `@` would be a path or an address instead of a version.
LOCK := build/lock
lock:
	rm -rf $(LOCK)
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/bin/python -m pip install $(QUIETLY) -e ".[dev,rpc]"
	echo "# python $(VERSION)" > $(LOCK)/constraints.txt
	$(LOCK)/bin/python -m pip freeze --exclude-editable >> $(LOCK)/constraints.txt
	! grep -n '@' $(LOCK)/constraints.txt
	mv $(LOCK)/constraints.txt constraints.txt
	rm -rf $(LOCK)

# Compiled bodies are not seen by coverage: kernels run uncompiled, too.
COVERED := -m coverage run -m pytest -q
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(AT_ONCE) test-legs RUN="$(COVERED)"
	$(MAKE) test-extras RUN="$(COVERED)"
	$(MAKE) coverage-report

coverage-report: $(STAMP)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95

torch: $(STAMP)
	$(BIN)/python -m pip install $(QUIETLY) "torch==2.13.0"

cuda: $(STAMP)
	$(BIN)/python -m pip install $(QUIETLY) -e ".[cuda]"

# Scenarios of real libraries, in an environment of their own: a type checker would read
# them all in the first one.  The plugin that npe2 brings for pytest warns when it loads,
# and warnings are errors.
LIBRARIES := build/libraries
libraries:
	$(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python -m pip install $(QUIETLY) $(CONSTRAINTS) -e ".[dev,libraries]"
	$(LIBRARIES)/bin/python $(RUN) -q -p no:npe2 -o faulthandler_timeout=1800 \
		-m "slow or not slow" tests/libraries

# The documentation, in a separate environment.
DOCS := build/docs
docs:
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install $(QUIETLY) $(CONSTRAINTS) -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis .everyorder .nox
