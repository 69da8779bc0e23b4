# Front door: each target installs what it needs, configures, builds and runs. The build itself is
# CMake's (CMakePresets.json).
#
#   JOBS=N    compile N files at once (default: the cores; each wants about 1 GiB)
#   DEPS=no   do not look for Debian packages (they are there by other means)
#   NODES=N   node processes of `make train` (default 2)
#   JOB=FILE  job of `make train`
#   SEEDS=N   schedules of `make simulate` (default 1000000)
#   PYTHON=FILE  interpreter with PyTorch for `make bench` (default python3; without it, no peer)
#   PREFIX=DIR  where `make install` puts it (default /usr/local)

JOBS   ?= $(shell nproc)
DEPS   ?= yes
NODES  ?= 2
JOB    ?= examples/mnist/lenet.toml
PYTHON ?= python3
SEEDS  ?= 1000000
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help train test simulate bench install format check clean deps-build deps-test deps-bench troupe

help:
	@echo 'make train    train LeNet-5 on a subset of MNIST on $(NODES) nodes, from nothing'
	@echo 'make test     build and run all tests'
	@echo 'make simulate  run $(SEEDS) simulated jobs whose nodes die and join'
	@echo 'make bench    build the benchmarks and compare with what is installed of the peers'
	@echo 'make install  install the library and the troupe command under PREFIX ($(PREFIX))'
	@echo 'make format   format all sources'
	@echo 'make check    everything that CI runs'
	@echo 'make clean    remove all builds'

deps-build:
	@[ '$(DEPS)' = no ] || scripts/deps build
deps-test:
	@[ '$(DEPS)' = no ] || scripts/deps build test
deps-bench:
	@[ '$(DEPS)' = no ] || scripts/deps build test bench-peers

# A configured build folder is left alone: the build configures again by itself where needed.
build/%/build.ninja:
	cmake --preset $*

troupe: deps-build build/release/build.ninja
	cmake --build --preset release --parallel $(JOBS) --target troupe

train: troupe
	build/release/tools/troupe train $(JOB) --nodes $(NODES)

test: deps-test build/dev/build.ninja
	cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev --no-tests=error

simulate: deps-test build/dev/build.ninja
	cmake --build --preset dev --parallel $(JOBS) --target job_machine_sim_test
	TROUPE_SIM_SEEDS=$(SEEDS) build/dev/tests/actors/job/job_machine_sim_test

bench: deps-bench build/release/build.ninja
	cmake --build --preset release --parallel $(JOBS)
	build/release/bench/remoting_bench
	build/release/bench/all_reduce_bench
	bench/training_bench.py --python $(PYTHON)
	bench/step_bench.py --python $(PYTHON)

install: troupe
	cmake --build --preset release --parallel $(JOBS)
	cmake --install build/release --prefix $(PREFIX)

format:
	scripts/format

check:
	.ci/run

clean:
	rm -rf build
