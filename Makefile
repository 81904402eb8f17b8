# The few words of this project: demo, test, slow, check, shapes, format, site, bench, faults, model,
# wheel, clean.
# Everything lives in .venv; `make demo` and `make test` make it when it is not there.

PYTHON ?= python3
# Only tests and research need it. A plain `torch` brings gigabytes of CUDA on Linux. Where your pip offers a CPU build of this
# version it is taken; set TORCH= to any torch >= 2.6 you prefer.
TORCH ?= torch==2.13.0
VENV := .venv
, := ,
BIN := $(VENV)/bin
# Your own folder: make demo VIDEOS=~/Videos
VIDEOS ?=

.PHONY: demo test slow check shapes format site bench faults model wheel clean

demo: $(VENV)/ready
	$(BIN)/python examples/demo.py $(if $(VIDEOS),"$(VIDEOS)")

# Types and shapes take a core each, and the tests as many as there are.

test: $(VENV)/ready-dev
	$(MAKE) -j 2 check shapes
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal

# What takes minutes: other documents, many machines, every value of every option of every system.
slow: $(VENV)/ready-dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow or compositions"

# Tests that pass every system's tokens, scores and losses through the shapes in signatures.
shapes: $(VENV)/ready-dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m shapes \
		--jaxtyping-packages=sureshot,beartype.beartype tests/models/systems

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documents as a site in .cache/site; every warning fails.
site: $(VENV)/ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "To read it: $(BIN)/python -m http.server --directory .cache/site 8461"

# Sizes of made-up indexes; WINDOWS=1000000 wants 11 GB of disk and half an hour.
WINDOWS ?= 1000 10000 100000

bench: $(VENV)/ready-dev
	$(BIN)/python -m benchmarks.indexing
	$(BIN)/python -m benchmarks.pooling
	$(BIN)/python -m benchmarks.systems
	$(BIN)/python -m benchmarks.extraction
	$(BIN)/python -m benchmarks.serving
	$(BIN)/python -m benchmarks.memory listing --files 10000
	$(BIN)/python -m benchmarks.objects
	$(BIN)/python -m benchmarks.scale real .cache/scale --videos 500
	set -e; for n in $(WINDOWS); do for step in make finish truth search; do \
	  $(BIN)/python -m benchmarks.scale $$step .cache/scale --windows $$n; done; done

# glibc hands memory back after each step of the training and asks for it again; to keep it makes the
# training several times faster.
# oneDNN keeps what it has prepared for each shape of frames, if it may.
KEEP := ONEDNN_PRIMITIVE_CACHE_CAPACITY=20000 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_TOP_PAD_=67108864

model: $(VENV)/ready-dev
	$(KEEP) $(BIN)/python -m benchmarks.bundled --write

# Cases of each kind; SURESHOT_FAULTS_SEED takes others.
FAULTS ?= 1000

faults: $(VENV)/ready-dev
	SURESHOT_FAULTS=$(FAULTS) $(BIN)/python -m pytest -n auto --dist worksteal tests/faults

# A wheel in dist/, checked and tried with every Python from 3.11 to 3.13 that is there.
wheel: $(VENV)/ready-dev
	rm -rf dist
	$(PIP) wheel --no-deps --wheel-dir dist .
	$(BIN)/python -m tests.wheel dist/*.whl

clean:
	rm -rf $(VENV) .cache dist

# uv is quicker than pip, where there is one and it finds all that pip finds: it knows nothing of
# pip's settings. In the environment itself it takes 60 MB, which only development is worth.
PIP := $(BIN)/pip --quiet --disable-pip-version-check
INSTALL = uv pip install --quiet --python $(BIN)/python $(1) 2> /dev/null || $(PIP) install --no-compile $(1)

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sureshot needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) uninstall --yes setuptools  # Python 3.11 puts it there; nothing needs it
	$(call INSTALL,-e .)
	touch $@

$(VENV)/ready-dev: export PATH := $(CURDIR)/$(BIN):$(PATH)
$(VENV)/ready-dev: $(VENV)/ready
	$(PIP) install --no-compile "$(TORCH)" "uv>=0.5"
	$(call INSTALL,-e ".[dev$(,)docs$(,)research$(,)s3$(,)openvino$(,)ocr$(,)speech]")
	touch $@
