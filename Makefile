# Every target says what it does behind `##`; `make` alone lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_SECONDS ?= 300
SEED ?= 1
TRAIN_SEED ?= 2
TIMES ?= 20
# What installs, and what compiles and runs the fuzzer: .ci/run gives others, no environment does.
INSTALL = $(BIN)/pip install --quiet
CARGO_RUN = cargo run
export SETUPTOOLS_RUST_CARGO_PROFILE := release
export PIP_DISABLE_PIP_VERSION_CHECK := 1

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# Modules that a macro lists, where `cargo fmt` does not see them.
LISTED_MODULES := crates/tcp/src/control/*.rs crates/drive/src/links/*.rs
PACKAGING := setup.cfg pyproject.toml
EXAMPLE_CAPTURES := examples/split/server.pcap.gz examples/split/mobile.pcap.gz

.DEFAULT_GOAL := help
.PHONY: help client install rebuild demo test lint python-tests rust-tests test-modules test-lowest fuzz fuzz-short bench split-gain papers every-case validate validate-fresh validate-simulated validate-metamorphic validate-metamorphic-single calibrate docs docs-site wheel check-targets deb man clean system-packages

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-28s %s\n", $$1, $$2 }'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Two stamps: the demo needs only what a user needs, development needs all of it.
$(VENV)/.runtime: $(PACKAGING) $(RUST_SOURCES) | $(VENV)/bin/python
	$(BIN)/pip install --quiet 'setuptools>=77' 'setuptools-rust>=1.11' wheel
	$(BIN)/pip install --quiet --no-build-isolation --editable '.[html]'
	touch $@

$(VENV)/.development: $(PACKAGING) $(RUST_SOURCES) | $(VENV)/bin/python
	$(INSTALL) 'setuptools>=77' 'setuptools-rust>=1.11' wheel 'cargo-zigbuild>=0.20'
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	touch $@ $(VENV)/.runtime

install: $(VENV)/.development ## Make .venv with pepscope (Rust in release mode) and every development tool

rebuild: | $(VENV)/bin/python ## Compile the Rust extension again, nothing else
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .

demo: $(VENV)/.runtime ## Judge the sample captures and write the page that shows why
	@mkdir -p build
	$(BIN)/pepscope detect $(EXAMPLE_CAPTURES) --html build/pepscope-demo.html
	@echo "The page: file://$(CURDIR)/build/pepscope-demo.html"

test: system-packages install lint rust-tests fuzz-short python-tests ## Lint and run every test (what CI runs)

lint: install ## Style, types, import direction, stubs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy pepscope benchmarks detector distribution papers prober reference_proxy reference_sim reports tests
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/stubtest --mypy-config-file setup.cfg pepscope._core
	cargo fmt --all --check
	rustfmt --edition 2021 --check $(LISTED_MODULES)
	cargo clippy --workspace --all-targets --quiet -- -D warnings

# Two runs of one commit draw the same examples, so that a failure is the change's; PEPSCOPE_SEARCH=1 looks for new ones.
ifndef PEPSCOPE_SEARCH
rust-tests: export PROPTEST_RNG_SEED ?= 1
endif
rust-tests: ## Tests of the pure crates
	cargo test --workspace --quiet

# Every worker of pytest imports every test: one compiles their modules for all, while a processor may be idle. What is
# wrong with a module, python-tests says.
test-modules: install
	@$(BIN)/pytest --collect-only --quiet --quiet >/dev/null || true

# Many tests wait for paths with delays: three files a processor take turns (tests/conftest.py). What fails beside others
# runs once more, alone: a test that fails there as well fails the run; one that passes there is a fault of the test.
python-tests: install test-modules ## Tests of the Python rooms and of the packaging
	$(BIN)/pytest --numprocesses auto --dist loadfile --max-worker-restart 2 || { status=$$?; test $$status -eq 1 || exit $$status; \
		printf '\nThese failed beside others. Once more, alone; mend what passes now, too:\n'; \
		$(BIN)/pytest --last-failed --last-failed-no-failures none --exitfirst --verbose; }

test-lowest: install ## Run the rooms' tests with the oldest packages that setup.cfg admits, in an environment of their own
	$(PYTHON) -m venv build/lowest
	$(BIN)/python -m distribution.lowest_versions > build/lowest/constraints.txt
	build/lowest/bin/pip install --quiet 'setuptools>=77' 'setuptools-rust>=1.11' wheel
	build/lowest/bin/pip install --quiet --no-build-isolation --constraint build/lowest/constraints.txt --editable '.[lint,test]'
	build/lowest/bin/pytest --numprocesses auto --dist loadfile --ignore tests/packaging

fuzz-short: install
	$(CARGO_RUN) --release --quiet --package pepscope-fuzz -- --seconds 3

fuzz: ## Fuzz every parser for FUZZ_SECONDS each
	cargo run --release --quiet --package pepscope-fuzz -- --seconds $(FUZZ_SECONDS)

validate: install ## Score the detector on the captures whose truth is known and write docs/validation/corpus.md
	$(BIN)/python -m benchmarks.validation --write docs/validation/corpus.md
	$(MAKE) every-case

every-case: install ## Run the tests that leave out cases like others (tests/cases.py) with all of them (root, Linux)
	PEPSCOPE_EVERY_CASE=1 $(BIN)/pytest --numprocesses auto --dist loadfile $$(grep -rlE 'each_(value|pair)\(' tests --include='test_*.py')

validate-fresh: install ## Make captures that the detector was not developed on (root, Linux; SEED=1) and score the detector on them
	$(BIN)/python -m benchmarks.fresh -o build/fresh --seed $(SEED)
	$(BIN)/python -m benchmarks.validation --corpus build/fresh --as-recorded --askings

validate-simulated: install ## Score the detector on simulated captures (TIMES=20 campaigns) and write docs/validation/simulated.md
	$(BIN)/python -m benchmarks.validation.simulated --times $(TIMES) --write docs/validation/simulated.md
	$(BIN)/python -m benchmarks.validation.regular_setups --write docs/validation/simulated.md

validate-metamorphic: install ## Change labelled captures at random (SEED=1), score the verdicts and write docs/validation/changes.md
	$(BIN)/python -m benchmarks.metamorphic --simulated 264 --seed $(SEED) -o build/metamorphic-$(SEED).jsonl --write docs/validation/changes.md

validate-metamorphic-single: install ## The same of captures of one end of simulated networks (SEED=1), written to docs/validation/one-capture-changes.md
	$(BIN)/python -m benchmarks.one_ended_simulated --seed $(SEED) --networks 240 --out build/one-ended-$(SEED)
	$(BIN)/python -m benchmarks.metamorphic_single build/one-ended-$(SEED) --seed $(SEED) -o build/metamorphic-single-$(SEED).jsonl --write docs/validation/one-capture-changes.md

# Scored captures must be none that anything was fitted to: give a seed that no change of the detector has looked at.
calibrate: install ## Set probabilities beside truth on fresh captures (root, Linux; SEED=1), fit the weights on others (TRAIN_SEED=2)
	@test "$(SEED)" != "$(TRAIN_SEED)" || { echo "SEED and TRAIN_SEED must differ, got $(SEED) for both" >&2; exit 2; }
	$(BIN)/python -m benchmarks.fresh -o build/fresh-$(TRAIN_SEED) --seed $(TRAIN_SEED)
	$(BIN)/python -m benchmarks.fresh -o build/fresh-$(SEED) --seed $(SEED)
	$(BIN)/python -m benchmarks.calibration --train build/fresh-$(TRAIN_SEED) --score build/fresh-$(SEED) --simulated 660 \
		$(addprefix --metamorphic ,$(wildcard build/metamorphic-$(SEED).jsonl)) \
		--write docs/validation/calibration.md --diagram docs/figures/calibration.svg

bench: install ## Run side by side with tcptrace and tshark
	$(BIN)/python -m benchmarks.speed

split-gain: install ## Simulate what a split gains today and print the tables (five minutes)
	$(BIN)/python -m benchmarks.split_gain

papers: install ## Run the seed papers' experiments again in full (under an hour of two cores) and write their pages' tables
	$(BIN)/pepscope reproduce all --full -o build/papers
	$(BIN)/python docs/paper_tables.py build/papers

bench-quick: install ## The speed of detect and inspect beside tcptrace, in five minutes; fails where one fell behind
	$(BIN)/python -m benchmarks.speed.quick

docs: install ## Draw the figures of the documentation and write the pages made from the code
	$(BIN)/python docs/draw_figures.py
	$(BIN)/python docs/draw_timing.py
	$(BIN)/python docs/draw_split_gain.py
	$(BIN)/python docs/draw_applications.py
	$(BIN)/python docs/draw_split_points.py
	$(BIN)/python docs/draw_validation.py
	$(BIN)/python docs/build.py
	$(BIN)/python docs/scenario_fields.py
	$(BIN)/python docs/worked_verdict.py

client: install ## Write the measuring client into build/, as one file and as a wheel: both need Python alone
	@mkdir -p build
	$(BIN)/python -m prober.lean.packing build/pepscope-client.pyz
	$(BIN)/python -m prober.lean.packing build

wheel: install ## Build the abi3 wheel for manylinux_2_28 and the sdist into dist/
	$(BIN)/python -m build --no-isolation --sdist --outdir dist .
	$(BIN)/python -m distribution.build_wheel --outdir dist

check-targets: install ## Compile the extension for every platform that has wheels (cargo check), where Rust has its library
	$(BIN)/python -m distribution.check_targets

deb: wheel ## Make a Debian package of the wheel, with its libraries, in dist/
	$(BIN)/python distribution/build_deb.py dist/*manylinux*.whl --outdir dist

man: install ## Write man pages into build/man/
	$(BIN)/python distribution/man_pages.py build/man

docs-site: install ## Build the documentation as a site into build/site/, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist target *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name '__pycache__' -prune -exec rm -rf {} +
	rm -f pepscope/_core*.so

system-packages:
	@bash tests/system-packages.sh
