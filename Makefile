# Two commands: `make demo` installs and runs the main job, `make test` installs what tests need and runs them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Inside a virtual environment only: nothing outside this folder is touched.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Files of tests are shared out to this many processes of one thread each; the ranks of some tests come on top.
JOBS ?= 2

.PHONY: demo test nightly check install install-test install-dev format clean

demo: install
	$(BIN)/mpiexec -n 2 $(BIN)/seiche run examples/bifurcation/case.toml --replace

test: install-test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

# Tests that take an hour or so: runs of every kind killed at 60 random instants.
nightly: install-test
	$(BIN)/python -m pytest -n $(JOBS) -m nightly $(PYTEST_ARGS)

# What a change must pass beside the tests: style, types, layers, and every GPU kernel through NVRTC (no GPU needed).
check: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p seiche
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files '*.hpp' '*.cpp')
	$(BIN)/python -m seiche.backend.gate

format: install-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $$(git ls-files '*.hpp' '*.cpp')

install: $(VENV)/installed
install-test: $(VENV)/installed-test
install-dev: $(VENV)/installed-dev

SOURCES := pyproject.toml CMakeLists.txt $(shell find src -name '*.py' -o -name '*.hpp' -o -name '*.cpp')

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(SOURCES) | $(BIN)/python
	@echo "installing Seiche into $(VENV): the CPU kernels take about four minutes to compile on two cores"
	$(INSTALL) .
	touch $@

# Seiche itself is installed already: these two only add what the extras name.
$(VENV)/installed-test: $(VENV)/installed
	$(INSTALL) 'seiche[test]'
	touch $@

$(VENV)/installed-dev: $(VENV)/installed-test
	$(INSTALL) 'seiche[dev]'
	touch $@

clean:
	rm -rf build $(VENV)
