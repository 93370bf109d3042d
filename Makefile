# The two commands of this project are `make demo` and `make test`.
#
#   make demo    installs what is missing, builds, and compares cosched with plain Linux and with one after another, on
#                workloads/demo.toml, as an ordinary user
#   make test    installs what is missing, and runs every check and every test
#   make bench   measures gangs beside plain Linux, other runtimes and waiting in line: an hour or more;
#                RUNS=6 MIXES=numpy,few SOLO=0.5 makes it shorter (SOLO: seconds of each of the thesis' programs
#                alone), PROGRAMS=DIR takes the executables in a folder. Then bench-lock; LOCK=0, MIXES and PROGRAMS
#                leave that out
#   make bench-lock  measures faithful scheduling where threads wait for locks, and what watching costs: three hours;
#                RUNS=7 SECONDS=1 CELLS=lock-loop,mariadb INTERVAL=100ms makes it shorter or other
#   make test-aa    whether comparisons claim differences between equal things, and say the same each time; on the idle
#                machine
#   make bench-barrier  measures barriers that know which threads run against those that do not: half a day; RUNS=7
#                SECONDS=1.5 CELLS="omp 2us,groups" choose, SAMPLE=60 draws cells by lot; target/bench/barrier.json and .md
#   make bench-malleable  what it costs a program to be malleable, where that brings it nothing: ten minutes; on the idle
#                machine; RUNS=15 SECONDS=10
#   make bench-fairness  how equal slowdowns are under fair progress, and what that costs: 35 minutes; RUNS=7
#                SECONDS=4 CELLS="all four" PARTS=cells,overhead choose; target/bench/fairness.json and .md
#   make bench-shuffling  what thread shuffling does to locks and programs, with memcached: some ten minutes; RUNS=7
#                SECONDS=4 CELLS=lock-loop,memcached choose; target/bench/shuffling.json and .md
#   make bench-mechanisms  mechanisms of the papers beside their rivals, on small programs: a quarter of an hour; RUNS=7
#                CELLS="one lock,a pipeline" choose, RESUME=1 goes on; target/bench/mechanisms.json and .md
#   make bench-kernels  policies on mixes of small programs of which each does one thing: half a day; RUNS=7 SECONDS=1
#                CELLS="numpy x4,single" HALF=tuning VARIANTS=linux,fcfs,turns choose, RESUME=1 goes on; target/bench/kernels.json
#                and .md
#   make bench-real  policies on mixes of real programs from PyPI and Debian: three hours; chosen like those of
#                bench-kernels; target/bench/real.json and .md
#   make bench-foreign  what a process outside the run gets beside it: five minutes; target/bench/foreign.json
#   make bench-policies-sim  policies on modelled machines of 24, 64 and 128 CPUs: some minutes; experiments/policies/results.md
#   make bench-progress  which figure of the kernel tells how fast a program is: some minutes; on the idle machine
#   make bench-sim  how many events the simulator handles per second: target/bench/sim.json, and a picture, sim.svg
#   make fuzz    every parser gets damaged input, for HOURS hours (1)
#   make faults  system calls of cosched, shims and sentinel fail, each at FAULTS moments (20): half an hour
#   make kills   cosched, its sentinel and its shims are killed, at KILLS moments (31) of each command: three minutes
#   make soak    a run of HOURS hours (1); fails where memory, descriptors or the undo log grow
#   make scaff   checks every claim of the thesis on scaff in the simulator: some minutes
#   make experiments  reruns the papers' experiments, and writes experiments/results.md: some 40 minutes
#   make test-report  opens a report in a browser without a window, and looks whether it works (installs Chromium)
#   make package a Python wheel, tarballs with a static executable, and a Debian package: target/package; make wheel,
#                make tarball and make deb make one of them
#   make test-wheel  tests the wheel's module in a clean virtual environment
#   make test-package  installs, uses and removes all of them in clean roots; needs root; RELEASES="bookworm jammy" chooses
#   make test-real  runs packages from PyPI and Open MPI under cosched
#   make test-guest  runs tests on emulated machines, see guest/README.md; needs root
#   make setup   only installs what is missing from the distribution
#   make build   cosched itself, optimised
#   make kernels the C programs of workloads/
#   make lint    formatting, clippy, licences of dependencies

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:

PACKAGES   := gcc libc6-dev python3-numpy libopenblas0-pthread clang libbpf-dev libelf-dev zlib1g-dev
RUST       := 1.85
# The last release that builds with the Rust above.
CARGO_DENY := 0.18.3
TARGET     := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help demo test bench bench-lock bench-barrier bench-fairness bench-shuffling bench-mechanisms bench-kernels bench-real bench-foreign bench-policies-sim bench-malleable bench-progress bench-sim scaff experiments fuzz faults kills soak test-aa test-real test-report test-guest package deb tarball wheel test-wheel test-package setup build kernels lint clean
help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

demo: setup build kernels
	@workloads/demo.sh $(TARGET)/release/cosched

build: setup
	@cargo build --release --locked -p cosched -p cosched-hook -p cosched-ext

kernels: setup
	@$(MAKE) --no-print-directory -s -C workloads

# Unoptimised, cargo-deny is ready in half the time, and fast enough.
lint: setup
	@cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	if ! cargo deny --version >/dev/null 2>&1; then
	    echo "lint: installing cargo-deny $(CARGO_DENY); this takes some minutes, once"
	    cargo install --locked --debug cargo-deny@$(CARGO_DENY)
	fi
	cargo deny --locked check licenses bans sources

# A browser for the page of a report, and LLVM's runtime of OpenMP.
CHROMIUM := $(if $(shell command -v chromium chromium-browser google-chrome),,chromium-headless-shell)
# The readers of traces and metrics that others use.
READERS := perfetto==0.16.0 prometheus-client==0.23.1
# What the wheel's module is tested with.
TESTERS := pytest==8.4.2 mypy==1.18.2

# What a test could not do on this machine is told, and must be in the list of what may be missing.
test: PACKAGES += gfortran libomp-dev python3-venv strace $(CHROMIUM)
test: lint kernels
	@workloads/check.sh
	cargo build --locked -p cosched
	COSCHED=$(TARGET)/debug/cosched python3 -B bench/tests.py
	COSCHED=$(TARGET)/debug/cosched python3 -B experiments/policies/tests.py
	python3 -B experiments/fair-progress/tests.py
	COSCHED=$(TARGET)/debug/cosched python3 -B experiments/common/tests.py
	if [[ ! -e $(TARGET)/readers/complete ]]; then
	    echo "test: installing $(READERS) into $(TARGET)/readers"
	    if python3 -m venv --system-site-packages $(TARGET)/readers \
	            && $(TARGET)/readers/bin/pip install --quiet $(READERS); then
	        touch $(TARGET)/readers/complete
	    else
	        echo "test: they cannot be installed here, so the tests with them are skipped"
	        rm -rf $(TARGET)/readers
	    fi
	fi
	export PATH="$(abspath $(TARGET))/readers/bin:$$PATH"
	if cargo nextest --version >/dev/null 2>&1; then
	    cargo test --workspace --locked --doc
	    cargo nextest run --workspace --locked --tool-config-file cosched:$(CURDIR)/.ci/nextest.toml
	    .ci/skips $(TARGET)/nextest/default/junit.xml
	else
	    cargo test --workspace --locked -- --show-output
	fi

bench: PACKAGES += libomp5 $(if $(PROGRAMS),,python3-sklearn)
bench: setup build kernels
	@$(if $(PROGRAMS),,$(MAKE) --no-print-directory -s -C workloads calibration)
	python3 -B bench/gang.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(MIXES),--mixes $(MIXES)) \
	    $(if $(SOLO),--seconds $(SOLO)) $(if $(PROGRAMS),--programs "$(PROGRAMS)")
	$(if $(filter 0,$(LOCK))$(MIXES)$(PROGRAMS),,$(MAKE) --no-print-directory bench-lock)

# The database's program alone, without the package that makes a service of it.
bench-lock: PACKAGES += sysbench mariadb-server-core mariadb-client-core
bench-lock: setup build kernels
	@export PYTHONDONTWRITEBYTECODE=1
	python3 bench/lock.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) \
	    $(if $(CELLS),--cells "$(CELLS)") $(if $(INTERVAL),--interval $(INTERVAL)) $(if $(RESUME),--resume)
	python3 bench/monitor.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS))

bench-barrier: PACKAGES += libomp5
bench-barrier: setup build kernels
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/barrier.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CELLS),--cells "$(CELLS)") $(if $(SAMPLE),--sample $(SAMPLE)) \
	    $(if $(RESUME),--resume)

bench-malleable: build kernels
	@cargo build --release --locked -p cosched-hook --examples
	PYTHONDONTWRITEBYTECODE=1 python3 bench/malleable.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS))

bench-fairness: setup build kernels
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/fairness.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CELLS),--cells "$(CELLS)") \
	    $(if $(PARTS),--parts "$(PARTS)")

bench-shuffling: PACKAGES += memcached libmemcached-tools
bench-shuffling: setup build kernels
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/shuffling.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CELLS),--cells "$(CELLS)")

bench-mechanisms: setup build kernels
	@python3 -B bench/mechanisms.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    $(if $(RUNS),--runs $(RUNS)) $(if $(CELLS),--cells "$(CELLS)") $(if $(RESUME),--resume)

# What chooses the mixes and variants of bench/policies.py.
POLICIES_OPTIONS = $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(CELLS),--cells "$(CELLS)") \
    $(if $(HALF),--half $(HALF)) $(if $(VARIANTS),--variants "$(VARIANTS)") $(if $(RESUME),--resume)

bench-kernels: PACKAGES += libomp5 python3-sklearn
bench-kernels: setup build kernels
	PYTHONDONTWRITEBYTECODE=1 python3 bench/policies.py --set kernels --cosched $(TARGET)/release/cosched \
	    --out $(TARGET)/bench $(POLICIES_OPTIONS)

bench-foreign: build kernels
	PYTHONDONTWRITEBYTECODE=1 python3 bench/foreign.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench \
	    --runs $(or $(RUNS),3)

# The programs from PyPI are in an environment of their own. A program that cannot be made is left out.
bench-real: PACKAGES += libomp5 python3-venv python3-torch gromacs openmpi-bin libopenmpi-dev golang-go default-jdk-headless ffmpeg zstd
bench-real: setup build kernels
	@$(MAKE) --no-print-directory -k -s -C bench/real OUT="$(abspath $(TARGET))/bench/real-programs" || true
	PYTHONDONTWRITEBYTECODE=1 python3 bench/policies.py --set real --cosched $(TARGET)/release/cosched \
	    --out $(TARGET)/bench $(POLICIES_OPTIONS)

bench-policies-sim: build
	@PYTHONDONTWRITEBYTECODE=1 experiments/policies/run --cosched $(TARGET)/release/cosched --out $(TARGET)/policies-sim

# Each time with other input; what fails is kept and tried first the next time.
fuzz: setup
	@cargo test --release --locked -p cosched-fuzz --no-run
	cargo test --release --locked -p cosched-run --lib --no-run
	end=$$(( $$(date +%s) + $$(awk 'BEGIN { print int(3600 * $(or $(HOURS),1)) }') ))
	for (( round = 1; $$(date +%s) < end; round++ )); do
	    PROPTEST_CASES=$(or $(CASES),20000) cargo test --release --locked -q -p cosched-fuzz
	    PROPTEST_CASES=$(or $(CASES),20000) cargo test --release --locked -q -p cosched-run --lib damaged_
	    echo "fuzz: round $$round, $$(( (end - $$(date +%s)) / 60 )) min left"
	done

faults: setup
	@COSCHED_FAULTS=$(or $(FAULTS),20) cargo test --locked -p cosched --test live -- --test-threads 1 whichever_call

# 31 kills: each combination of cosched, its sentinel and three shims once.
kills: setup
	@COSCHED_KILLS=$(or $(KILLS),31) cargo test --locked -p cosched --test live -- --test-threads 1 killed_together:: kills::killed_ turns::killed_

soak: build
	@PYTHONDONTWRITEBYTECODE=1 bench/soak.py --cosched $(TARGET)/release/cosched $(if $(HOURS),--hours $(HOURS))

test-aa: build kernels
	@$(MAKE) --no-print-directory -s -C workloads calibration
	PYTHONDONTWRITEBYTECODE=1 python3 bench/aa.py --cosched $(TARGET)/release/cosched --out $(TARGET)/aa

bench-progress: build kernels
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/progress.py --cosched $(TARGET)/release/cosched --out $(TARGET)/bench

bench-sim:
	@mkdir -p $(TARGET)/bench
	cargo run --release --locked -p cosched-sim --example events_per_second | tee $(TARGET)/bench/sim.json
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/sim_speed.py <$(TARGET)/bench/sim.json >$(TARGET)/bench/sim.svg

scaff: build
	@PYTHONDONTWRITEBYTECODE=1 experiments/scaff/run --cosched $(TARGET)/release/cosched --out $(TARGET)/scaff

experiments: build
	@PYTHONDONTWRITEBYTECODE=1 experiments/reproduction --cosched $(TARGET)/release/cosched --out $(TARGET)

# What the packages compute must be what it is without cosched.
REAL := scikit-learn==1.9.1 pytest==8.4.2 pytest-xdist==3.8.0 hypothesis==6.170.17
test-real: PACKAGES += python3-venv openmpi-bin libopenmpi-dev
test-real: setup
	@if [[ ! -e $(TARGET)/real/complete ]]; then
	    echo "test-real: installing $(REAL) into $(TARGET)/real"
	    if ! python3 -m venv --clear $(TARGET)/real \
	            || ! $(TARGET)/real/bin/pip install --quiet $(REAL); then
	        echo "test-real: skipped: they cannot be installed here"
	        exit
	    fi
	    touch $(TARGET)/real/complete
	fi
	COSCHED_REAL_PYTHON="$(abspath $(TARGET))/real/bin/python" \
	    cargo test --locked -p cosched --test live real:: -- --nocapture --test-threads 1

test-report: PACKAGES += $(if $(shell command -v chromium chromium-browser google-chrome),,chromium-headless-shell)
test-report: setup
	cargo test --locked -p cosched --test report -- --nocapture

deb tarball wheel package: PACKAGES += binutils dpkg-dev python3 python3-venv
deb: build
	@packaging/build.sh

tarball: setup
	@packaging/portable.sh x86_64

wheel: tarball
	@packaging/wheel.sh

package: deb wheel
	@packaging/portable.sh aarch64

# Typed, so the types are checked, too.
test-wheel: wheel
	@environment=$(abspath $(TARGET))/package/environment
	rm -rf "$$environment"
	python3 -m venv "$$environment"
	"$$environment/bin/pip" install --quiet $(TESTERS) $(TARGET)/package/cosched-*.whl
	export PYTHONDONTWRITEBYTECODE=1
	MYPYPATH=python/src "$$environment/bin/mypy" --strict --cache-dir "$$environment/mypy" python/src python/tests
	"$$environment/bin/pytest" -p no:cacheprovider python/tests

test-package: PACKAGES += debootstrap lintian man-db
test-package: package
	@packaging/test.sh
	packaging/try.sh $(RELEASES)

# All of them, even after one has failed.
test-guest: setup
	@guest/fetch.sh
	guest/build.sh
	failed=()
	for variant in guest/variants/*; do
	    name=$${variant##*/}
	    guest/run.sh "$$name" && continue
	    # Where time passes with instructions, a second boot would say the same.
	    if ! grep -q '^CLOCK=instructions' "$$variant"; then
	        echo "guest: $$name: once more, as what its host does beside it may have been in its way"
	        guest/run.sh "$$name" && continue
	    fi
	    failed+=("$$name")
	done
	if (( $${#failed[@]} > 0 )); then echo "guest: failed: $${failed[*]}" >&2; exit 1; fi

# Installs without questions, and calls apt-get only where something is missing.
setup:
	@if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
	    echo "setup: no cargo and rustc in PATH. Remedy: install Rust $(RUST) or newer with rustup." >&2
	    exit 1
	fi
	found=$$(rustc --version | cut -d' ' -f2)
	if [[ $$(printf '%s\n' $(RUST) "$$found" | sort -V | head -1) != $(RUST) ]]; then
	    echo "setup: rustc $$found is too old. Remedy: rustup update stable (needed: $(RUST) or newer)." >&2
	    exit 1
	fi
	if ! command -v dpkg-query >/dev/null; then
	    echo "setup: not a Debian or Ubuntu; gcc with OpenMP and numpy with OpenBLAS are taken to be there."
	    exit 0
	fi
	missing=()
	for package in $(PACKAGES); do
	    state=$$(dpkg-query -W -f='$${db:Status-Status}' "$$package" 2>/dev/null || true)
	    [[ $$state == installed ]] || missing+=("$$package")
	done
	if (( $${#missing[@]} == 0 )); then exit 0; fi
	root=()
	if (( EUID != 0 )); then
	    if ! command -v sudo >/dev/null; then
	        echo "setup: missing: $${missing[*]}. Remedy: as root, apt-get install $${missing[*]}" >&2
	        exit 1
	    fi
	    root=(sudo)
	fi
	echo "setup: installing $${missing[*]}"
	"$${root[@]}" apt-get update -q
	"$${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$${missing[@]}"

clean:
	@cargo clean
	$(MAKE) -C workloads clean
