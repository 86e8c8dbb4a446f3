# The tasks of a developer. `just` lists them. The extra `dev` brings `just` itself.
# `unit`, `integration` and `exhaustive` pass further options to pytest: `just unit -k retry -n 0`.

set positional-arguments

export PIP_NO_COMPILE := "no"

# List the tasks.
default:
    @just --list --unsorted

# Install what the checks and the unit and integration tests need, into the active environment.
setup:
    python -m pip install -e '.[dev]'

# Install the other libraries too: Beam, Dask, Ray, OpenDP, diffprivlib, Polars and more.
setup-interop:
    python -m pip install -e '.[dev,interop]'

# Run every check that needs no test: lint, types, docs.
check: lint types docs

# Check style, format, spelling and the direction of imports.
lint:
    ruff check .
    ruff format --check .
    codespell README.md CONTRIBUTING.md SECURITY.md docs/start docs/guides docs/explanation docs/help docs/tutorials docs/case-studies
    lint-imports

# Repair style and format where ruff can.
fix:
    ruff check --fix .
    ruff format .

# Check the types.
types:
    mypy

# Build the site of the docs in build/site; a warning is an error.
docs:
    sphinx-build -W --keep-going -n -q docs build/site

# Run the unit tests.
unit *options:
    pytest "$@"

# Run the integration tests: processes, PostgreSQL, the service, Node.js and a browser.
integration *options:
    pytest --integration "$@"

# Run the exhaustive tests: long properties, big fuzzes, other libraries, installations. `--part 1/6` runs a sixth.
exhaustive *options:
    pytest --exhaustive "$@"

# Run the unit tests in a random order; the heading prints the seed, `just shuffle --randomly-seed=SEED` repeats it.
shuffle *options:
    pytest -p randomly "$@"

# Measure the coverage of the unit and integration tests.
coverage *options:
    mkdir -p build/coverage
    pytest --unit --integration --cov --cov-report=term "$@"

# Run a benchmark of benchmarks/: `just bench ledger`.
bench NAME *options:
    name="$1"; shift; python "benchmarks/$name.py" "$@"

# Record generated references and examples again; read the diff.
record:
    python docs/reference/generate.py
    python tests/helpers/service_examples.py

# Add a fragment to the changelog: `just changelog 28 added "just runs every task."`.
changelog ISSUE KIND TEXT:
    towncrier create --content "$3" "$1.$2.md"

# Show the next section of the changelog.
changelog-draft:
    towncrier build --draft --version "$(python tools/version.py)"

# Set a version in every file that names it, and move the fragments into the changelog: `just version 1.0.0`.
version VERSION:
    python tools/version.py "$1"
    python tests/helpers/service_examples.py
    python docs/reference/generate.py

# Build all files of a release into dist/, from the newest commit: `just release 1.0.0`.
release VERSION *options:
    python tools/release.py "$@"

# Build a release twice, compare the bytes, and install and try its files on every Python that is here.
release-check:
    pytest -q tests/exhaustive/house

# Do all that CI does, in a clean copy with a fresh environment.
ci:
    .ci/run
