# `make demo` and `make test` do everything on a fresh machine: they set up first.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: setup demo test test-slow bench clean

setup: $(VENV)/.ready

# torch comes first and from the pinned version alone: see constraints.txt.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "genorder needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "$$(grep ^torch== constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/genorder discover --task square --length 20 --set final.training.steps=400 --out runs/demo

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

test-slow: setup
	$(BIN)/pytest -m slow

bench: setup
	$(BIN)/genorder bench training

clean:
	rm -rf $(VENV)
