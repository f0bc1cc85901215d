# `make demo` and `make test` do everything on a fresh machine: they set up first.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: setup demo test test-slow bench clean

setup: $(VENV)/.ready $(VENV)/.browser

# torch comes first and from the pinned version alone: see constraints.txt.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "genorder needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$$(grep ^torch== constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# For the tests of the report's page alone: they are skipped, and say why, where these cannot be had; the next time,
# it is tried again.
$(VENV)/.browser: | $(VENV)/.ready
	complete=yes; \
	command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq --yes chromium >/dev/null; } || \
	  { complete=; echo "no chromium, and no right to install it: the browser tests will be skipped"; }; \
	npm install --silent --prefix $(VENV)/axe axe-core@4.14.0 || \
	  { complete=; echo "no npm, or no connection: the accessibility tests will be skipped"; }; \
	test -z "$$complete" || touch $@

demo: $(VENV)/.ready
	$(BIN)/genorder discover --task square --length 20 --out runs/demo

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile

test-slow: setup
	$(BIN)/pytest -m slow

bench: $(VENV)/.ready
	$(BIN)/genorder bench training

clean:
	rm -rf $(VENV)
