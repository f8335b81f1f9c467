# Every target makes the virtual environment that it needs and installs into it only when pyproject.toml has changed.
PYTHON ?= python3
VENV ?= .venv
VENV_CORE ?= .venv-core
VENV_ZOO ?= .venv-zoo
VENV_DOCS ?= .venv-docs
BIN := $(VENV)/bin
CORE := $(VENV_CORE)/bin
ZOO := $(VENV_ZOO)/bin
DOCS := $(VENV_DOCS)/bin
PYTEST_ARGS ?=

# One thread a process: the arrays of the tests are small, and threads that wait for each other only cost time.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo demo-zoo test test-core test-zoo slow lint docs test-docs clean

help:
	@echo "make demo       seven classifiers, twenty labels: estimates with intervals beside the truth"
	@echo "make demo-zoo   a small contamination sweep on digits, judged with twenty labels (installs torch)"
	@echo "make test       ruff, mypy, tests, doctests, coverage"
	@echo "make test-core  command line and estimator as an installed wheel with nothing but its own dependencies"
	@echo "make test-zoo   the tests that need torch: ssl_zoo, the adapters, the metrics against torchmetrics"
	@echo "make test-docs  the site: built without a warning, every page reachable, nothing fetched from the network"
	@echo "make slow       the tests that take minutes"
	@echo "make lint       ruff and mypy alone"
	@echo "make docs       the documentation as a site in site/; warnings are errors, the gallery is executed"
	@echo "make clean      remove the environments and what tests and builds left behind"

$(VENV)/.core.stamp: pyproject.toml
	@echo "Installing into $(VENV); this takes a minute or two the first time."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.dev.stamp: pyproject.toml
	@echo "Installing into $(VENV); this takes a minute or two the first time."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(VENV)/.core.stamp $@

demo: $(VENV)/.core.stamp
	$(BIN)/ssme demo

demo-zoo: $(VENV_ZOO)/.zoo.stamp
	$(ZOO)/ssl-zoo demo

lint: $(VENV)/.dev.stamp
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(TEST_ENV) $(BIN)/pytest --cov --cov-report=term $(PYTEST_ARGS)

slow: $(VENV)/.dev.stamp
	$(TEST_ENV) $(BIN)/pytest -m slow --timeout=3600 $(PYTEST_ARGS)

# The wheel, not the source tree, is what is tested here; the environment is made anew so that no old wheel is tested.
test-core:
	rm -rf $(VENV_CORE)
	$(PYTHON) -m venv $(VENV_CORE)
	$(CORE)/python -m pip install --quiet . pytest pytest-timeout hypothesis
	cd $(VENV_CORE) && bin/python -c "from importlib.util import find_spec as f; import ssme; print('tested:', ssme.__file__); assert f('torch') is None, 'torch is installed here'"
	$(TEST_ENV) $(CORE)/pytest tests/test_imports.py tests/ssme/test_cli.py tests/ssme/test_demo.py tests/ssme/test_estimator.py $(PYTEST_ARGS)

$(VENV_ZOO)/.zoo.stamp: pyproject.toml
	@echo "Installing torch and the rest into $(VENV_ZOO); this takes minutes and some gigabytes the first time."
	test -x $(ZOO)/python || $(PYTHON) -m venv $(VENV_ZOO)
	$(ZOO)/python -m pip install --quiet --editable ".[dev,zoo,hf]" torchmetrics
	touch $@

test-zoo: $(VENV_ZOO)/.zoo.stamp
	$(TEST_ENV) $(ZOO)/pytest tests/zoo tests/adapters ssl_zoo tests/ssme/test_metrics_exact.py "tests/test_docs.py::test_snippets_run[hugging-face.md]" $(PYTEST_ARGS)

$(VENV_DOCS)/.docs.stamp: pyproject.toml
	@echo "Installing into $(VENV_DOCS); this takes a minute the first time."
	test -x $(DOCS)/python || $(PYTHON) -m venv $(VENV_DOCS)
	$(DOCS)/python -m pip install --quiet --editable ".[docs]" pytest pytest-timeout
	touch $@

docs: $(VENV_DOCS)/.docs.stamp
	$(TEST_ENV) NO_MKDOCS_2_WARNING=1 $(DOCS)/python -m mkdocs build --strict --clean

test-docs: $(VENV_DOCS)/.docs.stamp
	$(TEST_ENV) NO_MKDOCS_2_WARNING=1 $(DOCS)/pytest --noconftest tests/test_docs.py -k "site or nav" $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(VENV_CORE) $(VENV_ZOO) $(VENV_DOCS) .venv-ci site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	find ssme tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
