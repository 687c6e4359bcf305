# `make demo` and `make test` create what they need and reuse it afterwards.

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)

.PHONY: help demo test-fast test test-oldest lint format docs benchmarks dist clean

help:
	@echo "make demo        the main job on data inside scikit-learn, under two minutes"
	@echo "make test-fast   tests that take no time, without torch, for every save"
	@echo "make test        all tests"
	@echo "make test-oldest the tests on the oldest supported scikit-learn"
	@echo "make lint        style, docstrings, import contract, types"
	@echo "make format      apply the style"
	@echo "make docs        the site, in docs/build"
	@echo "make benchmarks  measure again every figure of the pages (some hours)"
	@echo "make dist        what a release uploads, built and tried out"
	@echo "make clean       remove the virtual environment and caches"

# The version that is installed is that of __init__.py.
$(VENV)/core: pyproject.toml $(CONSTRAINTS) sklearn_pate/__init__.py
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

# Without torch, which is large.
$(VENV)/test-fast: $(VENV)/core
	$(INSTALL) --editable '.[test-fast]'
	touch $@

# torch first, pinned by the constraints: whatever else depends on it finds it there.
$(VENV)/test: $(VENV)/test-fast
	$(INSTALL) torch
	$(INSTALL) --editable '.[test]'
	touch $@

# On top of the tests' packages: the types of torch are checked too.
$(VENV)/lint: $(VENV)/test
	$(INSTALL) --editable '.[lint]'
	touch $@

demo: $(VENV)/core
	$(RUN) examples/quickstart.py

# What is quick and needs no torch; FAST=tests/accounting is a part of it.
test-fast: $(VENV)/test-fast
	$(RUN) -m pytest --fast --quiet $(FAST)

# Two at a time: each worker, with torch in it, takes about a gigabyte of memory.
test: $(VENV)/test
	$(RUN) -m pytest --numprocesses 2 --dist worksteal

# In an environment of its own, before every release.
test-oldest:
	$(MAKE) test VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

lint: $(VENV)/lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/numpydoc lint $$(git ls-files 'sklearn_pate/*.py')
	$(VENV)/bin/lint-imports --config setup.cfg
	$(VENV)/bin/mypy
	$(RUN) benchmarks/tables.py --check

$(VENV)/docs: $(VENV)/test
	$(INSTALL) --editable '.[docs]'
	touch $@

# The site, with its gallery; then every link in it, and every example of a docstring.
docs: $(VENV)/docs
	$(RUN) -m sphinx --quiet --fail-on-warning --keep-going --builder html docs docs/build
	$(RUN) docs/check_links.py docs/build
	$(RUN) -m pytest --numprocesses 2 sklearn_pate

format: $(VENV)/lint
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# A peer that needs an older scikit-learn.
.venv-diffprivlib/installed:
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet diffprivlib==0.6.6 'scikit-learn<1.8'
	touch $@

benchmarks: $(VENV)/test .venv-diffprivlib/installed
	$(INSTALL) --editable '.[bench]'
	$(RUN) benchmarks/overhead.py
	$(RUN) benchmarks/teachers.py
	$(RUN) benchmarks/images.py
	$(RUN) benchmarks/petdl.py
	$(RUN) benchmarks/petdl_paper.py
	$(RUN) benchmarks/dpsgd.py
	$(RUN) benchmarks/vat.py
	$(RUN) benchmarks/erm.py
	$(RUN) benchmarks/private_search.py
	DIFFPRIVLIB_PYTHON=.venv-diffprivlib/bin/python $(RUN) benchmarks/private_learners.py
	$(RUN) benchmarks/pictures.py
	$(RUN) benchmarks/tabular.py
	$(RUN) benchmarks/accounting.py
	$(RUN) benchmarks/safety.py
	$(RUN) benchmarks/audits.py
	$(RUN) benchmarks/learner_audits.py
	$(RUN) benchmarks/rounding_attack.py
	$(RUN) benchmarks/tables.py

$(VENV)/dist: $(VENV)/core
	$(INSTALL) --editable '.[dist]'
	touch $@

# The wheel is built from the source distribution, and in an environment of its own.
dist: $(VENV)/dist
	rm -rf dist
	$(RUN) -m build
	$(RUN) -m twine check --strict dist/*
	$(RUN) .ci/check_dist.py

clean:
	rm -rf .venv .venv-oldest .venv-diffprivlib build dist docs/build docs/auto_examples docs/api/generated docs/api/backreferences *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
