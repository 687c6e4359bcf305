# `make demo` and `make test` create their virtual environment and reuse it.

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)

# Else, each process of the tests would compile all modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test-fast test test-thorough test-offline test-kernels test-oldest test-engines coverage lint format docs benchmarks dist release clean

help:
	@echo "To use the package, install it from this folder into an environment of your own:"
	@echo "  pip install '.[data,publish,plot]'   dataframes, published models, pictures"
	@echo
	@echo "To try and to test it, each of these commands makes .venv when it is missing, with"
	@echo "python3, or with another Python from 3.11 on: make demo PYTHON=python3.12"
	@echo
	@echo "make demo            private classifiers beside no privacy: half a minute of work"
	@echo "make test-fast       the quick tests, without torch, for every save"
	@echo "make test            the tests, without the code of the documentation"
	@echo "make test-thorough   the tests on larger grids, and on new examples"
	@echo "make test-offline    the tests without data files and network: tests on real data skip"
	@echo "make test-kernels    tests of neighbouring data under three kernels of OpenBLAS"
	@echo "make test-oldest     the tests with the oldest supported dependencies"
	@echo "make test-engines    tests of Spark and Ray; needs Java"
	@echo "make coverage        the share of the package that the quick tests run"
	@echo "make lint            check style, docstrings, import contracts, types and tables"
	@echo "make format          apply the style"
	@echo "make docs            build the site in docs/build; check it and its code"
	@echo "make benchmarks      repeat all measurements of the pages (some hours)"
	@echo "make dist            build and test the files of a release"
	@echo "make release         prepare a release: VERSION=0.1.0 README_HOME=https://.../"
	@echo "make clean           remove virtual environments and caches"

# The installed version is that of __init__.py.
$(VENV)/core: pyproject.toml $(CONSTRAINTS) sklearn_pate/__init__.py
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

# Without torch, which is large.
$(VENV)/test-fast: $(VENV)/core
	$(INSTALL) --editable '.[test-fast]'
	touch $@

# torch first, pinned by the constraints, before packages that depend on it.
$(VENV)/test: $(VENV)/test-fast
	$(INSTALL) torch
	$(INSTALL) --editable '.[test]'
	touch $@

# With the packages of the tests, as types of torch are checked too.
$(VENV)/lint: $(VENV)/test
	$(INSTALL) --editable '.[lint]'
	touch $@

# The core, and matplotlib for the picture.
$(VENV)/demo: $(VENV)/core
	$(INSTALL) --editable '.[plot]'
	touch $@

# One thread: several would wait for each other on a busy machine.
demo: $(VENV)/demo
	OMP_NUM_THREADS=1 $(RUN) examples/quickstart.py --folder demo

# Quick tests without torch; FAST=tests/accounting selects a part of them.
test-fast: $(VENV)/test-fast
	$(RUN) -m pytest --fast --quiet --numprocesses 2 --dist worksteal $(FAST)

# Two workers: each imports torch and takes about a gigabyte of memory.
test: $(VENV)/test
	$(RUN) -m pytest --numprocesses 2 --dist worksteal

# Larger grids, and examples of hypothesis that no run has seen: before every release.
test-thorough: $(VENV)/test
	$(RUN) -m pytest --thorough --numprocesses 2 --dist worksteal
	$(RUN) -m pytest -m "docs and thorough"

# Without data files and network, every test on real data skips and none fails.
test-offline: $(VENV)/test
	$(RUN) -m pytest --offline --quiet tests

# In a separate environment, before every release; the code of documentation too.
test-oldest:
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt
	.venv-oldest/bin/python -m pytest -m docs --numprocesses 2 --dist worksteal \
	  --deselect tests/test_examples.py

# Large packages that no other test needs.
test-engines: $(VENV)/test
	$(INSTALL) --editable '.[engines]'
	$(RUN) -m pytest tests/distributed/test_engines.py

# Products of matrices are rounded by the kernel of the processor: no proof may depend
# on it. OpenBLAS takes any kernel that the processor can run; Zen has those of Haswell.
# All other tests have one thread, and the kernel of the processor.
KERNELS := Nehalem Haswell $(shell grep -qsw avx512f /proc/cpuinfo && echo SkylakeX)
THREADS := 4
test-kernels: $(VENV)/test
	for kernel in $(KERNELS); do for threads in $(THREADS); do echo $$kernel $$threads; \
	  OPENBLAS_CORETYPE=$$kernel OPENBLAS_NUM_THREADS=$$threads $(RUN) -m pytest --quiet \
	    --numprocesses 2 --dist worksteal -m neighbours \
	    $$(grep -rl --include="*.py" mark.neighbours tests) || exit 1; \
	done; done

# The figure in CONTRIBUTING.md.
coverage: $(VENV)/test-fast
	$(INSTALL) --editable '.[coverage]'
	$(RUN) -m benchmarks coverage_of_tests
	$(RUN) -m benchmarks pages

lint: $(VENV)/lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/numpydoc lint $$(git ls-files 'sklearn_pate/*.py')
	$(VENV)/bin/lint-imports --config setup.cfg
	$(VENV)/bin/mypy
	$(RUN) -m benchmarks pages --check

$(VENV)/docs: $(VENV)/test
	$(INSTALL) --editable '.[docs]'
	touch $@

# The site with its gallery; then a check of all links, of what the gallery printed, and
# of the code of pages and docstrings, but for the page whose code takes minutes.
docs: $(VENV)/docs
	$(RUN) -m sphinx --jobs 2 --quiet --fail-on-warning --keep-going --builder html docs docs/build
	$(RUN) docs/check_links.py docs/build
	$(RUN) -m pytest -m "docs and not thorough" --numprocesses 2 --dist worksteal

format: $(VENV)/lint
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# diffprivlib needs an older scikit-learn.
.venv-diffprivlib/installed:
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet diffprivlib==0.6.6 'scikit-learn<1.8'
	touch $@

.venv-ebm/installed:
	$(PYTHON) -m venv .venv-ebm
	.venv-ebm/bin/python -m pip install --quiet interpret-core==0.7.8
	touch $@

# dpmm needs Python 3.10 or 3.11.
.venv-synthesiser/installed:
	$(PYTHON) -m venv .venv-synthesiser
	.venv-synthesiser/bin/python -m pip install --quiet dpmm==0.1.9
	touch $@

# kymatio needs an older scipy.
.venv-scattering/installed:
	$(PYTHON) -m venv .venv-scattering
	.venv-scattering/bin/python -m pip install --quiet --constraint $(CONSTRAINTS) torch
	.venv-scattering/bin/python -m pip install --quiet kymatio==0.3.0 'scipy<1.15'
	touch $@

.venv-survival/installed:
	$(PYTHON) -m venv .venv-survival
	.venv-survival/bin/python -m pip install --quiet scikit-survival==0.28.0
	touch $@

benchmarks: export DIFFPRIVLIB_PYTHON := .venv-diffprivlib/bin/python
benchmarks: export DP_EBM_PYTHON := .venv-ebm/bin/python
benchmarks: export SYNTHESISER_PYTHON := .venv-synthesiser/bin/python
benchmarks: export SCATTERING_PYTHON := .venv-scattering/bin/python
benchmarks: export SURVIVAL_PYTHON := .venv-survival/bin/python
BENCHMARKS := rules engines overhead images paper_students image_recipe petdl petdl_paper \
  petdl_components dpsgd siamese erm private_search private_learners sizes sites \
  private_metrics tabular mean_scores six_tables pate_defaults codes outcomes \
  cluster newton_speed \
  release_utility adaptive_cost accounting safety audits learner_audits \
  rounding_attack readme guide_papers example_outputs pictures pages

# After a stop, the command goes on with the script that was stopped.
benchmarks: $(BENCHMARKS:%=benchmarks/work/%.done)
	rm benchmarks/work/*.done

benchmarks/work/%.done: | benchmarks/work/installed
	$(RUN) -m benchmarks $*
	touch $@

benchmarks/work/installed: $(VENV)/test .venv-diffprivlib/installed .venv-ebm/installed .venv-synthesiser/installed .venv-scattering/installed .venv-survival/installed
	$(INSTALL) --editable '.[bench,engines]'
	mkdir -p benchmarks/work
	touch $@

$(VENV)/dist: $(VENV)/core
	$(INSTALL) --editable '.[dist]'
	touch $@

# The time of the last commit and one umask, so that each build has the same bytes.
dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --pretty=%ct)

# The wheel is built from the source distribution, in a separate environment.
dist: $(VENV)/dist
	rm -rf dist
	umask 022; $(RUN) -m build --quiet
	$(RUN) -m twine check --strict dist/*
	umask 022; $(RUN) .ci/check_dist.py

# Commits the version, builds and tests; prints what is left for a person with the keys.
release: $(VENV)/dist $(VENV)/test-fast
	$(RUN) .ci/release.py $(VERSION)

clean:
	rm -rf .venv .venv-* build demo dist docs/build docs/outputs docs/auto_examples docs/api/generated docs/api/backreferences *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
