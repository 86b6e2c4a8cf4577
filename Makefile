# `make audit` runs the main job, `make test` lint, types and tests. Both set everything up on a fresh clone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.PHONY: audit test test-lowest release-check lint types unit docs pictures golden atlas scoreboard format clean

audit: $(STAMP)
	$(BIN)/python -m dpaudit run audits -j $(WORKERS)

# Types are checked and the site is built beside the tests: both have one process, and there is nothing to wait for.
test: lint
	$(MAKE) -j 2 types docs unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# One thread of OpenMP for each test process: idle threads of scikit-learn spin, and cost the others half of their time.
unit: $(STAMP)
	$(BIN)/python -m compileall -qq dpaudit mechanisms benchmarks || true
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# The site, in docs/_build/html. Strict: a link or a reference in a docstring that leads nowhere is an error.
docs: $(STAMP)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

# The tests with the lowest versions that pyproject.toml allows, in an environment of its own (pip cannot choose these, uv can).
LOWEST := .venv-lowest
# Golden results are pinned for the versions of constraints.txt alone.
test-lowest: $(LOWEST)/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal --ignore tests/golden

$(LOWEST)/.installed: pyproject.toml
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[test]'
	touch $@

# Builds wheel and sdist, installs each in a clean environment outside of the repository, and uses it there.
release-check: $(STAMP)
	$(BIN)/python -m benchmarks.release

# Draws the picture of README.md and docs/index.md again.
pictures: $(STAMP)
	$(BIN)/python -m benchmarks.pictures docs/pictures

# Audits the newest releases of other people's libraries, each in an environment of its own, and writes audits/libraries/SCOREBOARD.md.
# Results of earlier runs are used again; the first run takes about half an hour and eight gigabytes, and
# Java for Tumult Core.
scoreboard: $(STAMP)
	$(BIN)/python -m audits.libraries._scoreboard
	$(BIN)/ruff format --quiet audits/libraries/witnesses

# Pins the results of the audits in tests/golden anew, and prints which of them changed.
golden: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.golden

# Draws the pictures of docs/atlas.md again, in about two minutes.
atlas: $(STAMP)
	$(BIN)/python -m benchmarks.atlas docs/atlas

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The stamp is newer than what it was made from, so repeated runs skip the set-up. Libraries are compiled after the install, on
# all cores and without their tests: pip does it on one core and with them, which takes as long as everything else.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpaudit needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
	touch $(STAMP)

clean:
	rm -rf $(VENV) $(LOWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist docs/_build
