# `make demo` and `make test` create what they need and reuse it afterwards.

PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)

.PHONY: help demo test test-oldest lint format benchmarks clean

help:
	@echo "make demo        the main job on data inside scikit-learn, under two minutes"
	@echo "make test        the tests"
	@echo "make test-oldest the tests on the oldest supported scikit-learn"
	@echo "make lint        style, docstrings, import contract, types"
	@echo "make format      apply the style"
	@echo "make benchmarks  measure again every figure in README.md (some hours)"
	@echo "make clean       remove the virtual environment and caches"

$(VENV)/core: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	touch $@

# torch first, pinned by the constraints: whatever else depends on it finds it there.
$(VENV)/test: $(VENV)/core
	$(INSTALL) torch
	$(INSTALL) --editable '.[test]'
	touch $@

# On top of the tests' packages: the types of torch are checked too.
$(VENV)/lint: $(VENV)/test
	$(INSTALL) --editable '.[lint]'
	touch $@

demo: $(VENV)/core
	$(RUN) examples/quickstart.py

test: $(VENV)/test
	$(RUN) -m pytest

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

format: $(VENV)/lint
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

benchmarks: $(VENV)/test
	$(INSTALL) --editable '.[bench]'
	$(RUN) benchmarks/overhead.py
	$(RUN) benchmarks/teachers.py
	$(RUN) benchmarks/images.py
	$(RUN) benchmarks/petdl.py
	$(RUN) benchmarks/pictures.py
	$(RUN) benchmarks/tabular.py
	$(RUN) benchmarks/accounting.py
	$(RUN) benchmarks/safety.py
	$(RUN) benchmarks/audits.py
	$(RUN) benchmarks/tables.py

clean:
	rm -rf .venv .venv-oldest build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
