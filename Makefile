# The short front door: each target installs what it needs, configures, builds and runs.
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

prefix ?= /usr/local
JOBS ?= $(shell nproc)
SEEDS ?= 20000
SECONDS ?= 60
ROUNDS ?= 200
export HF_TEST_SERVER ?= $(shell command -v redis-server || command -v valkey-server || echo redis-server)

# The builds below have their own job control and their own variables.
unexport MAKEFLAGS

# $(call build,PRESET,TARGETS): configures the preset and builds the targets, while no other make does.
build = flock build/$(1).lock sh -c 'tools/configure $(1) $(CONFIGURE) && cmake --build build/$(1) -j $(JOBS) --target $(2)'

all: need-build maybe-zkheaders maybe-programs ## build the library, the command, the examples and the benchmarks (the default)
	@$(call build,release,holdfast holdfast_static holdfast_command holdfast_programs examples bench)

demo: need-build-server ## build, and watch locks being taken, waited for and lost
	@$(call build,release,holdfast_command)
	@build/release/holdfast demo

test: need-build-test maybe-zookeeper maybe-programs maybe-screens maybe-prometheus maybe-browser ## build and run the tests, except the longest
	@$(call build,release,all)
	@tools/run-tests release -LE 'long|session'

sessions: need-build-test maybe-zookeeper maybe-programs ## run the tests that wait until ZooKeeper sessions expire
	@$(call build,release,all)
	@tools/run-tests release:sessions -L session -LE long

test-servers: need-build-test-servers ## run the live tests against other server versions
	@$(call build,release,live_tests)
	@tools/test-servers

# If a package cannot be installed, tools/run-interop skips its tests and says so. ZooKeeper's headers are needed
# before the build.
interop: need-build-test ## run the tests that share locks with Java's Redisson and Curator
	@tools/need interop || true
	@$(call build,release,interop_tests)
	@tools/run-interop

# Tests that measure time need much of it. Those of the library run with the thread sanitizer, and those of the command,
# which waits in one thread, with the address sanitizer; make long has the rest.
timed_live = '^live_.*_serial$$'

asan: need-build-test maybe-zookeeper maybe-programs maybe-screens maybe-browser ## run the tests with the address and undefined sanitizers
	@$(call build,asan,all)
	@tools/run-tests asan -LE 'long|session' -E $(timed_live)

tsan: need-build-test maybe-zookeeper maybe-programs maybe-screens ## run the tests of the library with the thread sanitizer
	@$(call build,tsan,all)
	@tools/run-tests tsan -LE 'long|session|cli|sim|tools'

# OpenSSL has no such instrumentation, so TLS is left out; tests/cmocka takes the place of cmocka.
msan: need-build-test-fuzz maybe-zkheaders ## run the unit tests and the fuzz corpora with the memory sanitizer
	@$(call build,msan,unit_tests fuzzers)
	@tools/run-tests msan -L 'unit|fuzz' -LE 'session|timing'

long: need-build-test-lint maybe-zookeeper maybe-programs maybe-screens maybe-browser ## run the tests that the others leave out, an hour
	@$(call build,release,all)
	@tools/run-tests release -L long
	@$(call build,asan,all)
	@tools/run-tests asan -L 'long|session'
	@tools/run-tests asan -LE 'long|session' -R $(timed_live)
	@$(call build,tsan,all)
	@tools/run-tests tsan -L 'long|session|cli|sim'
	@$(call build,debug,generated)
	@tools/lint --deep build/debug

# Left out: tests that measure time or memory, that crowd the machine, that execute themselves, that play the same
# story in seventy processes, or whose forked child looks like a leak.
valgrind: need-build-test-valgrind ## run most tests under valgrind
	@$(call build,release,unit_tests wire_tests live_tests)
	@tools/run-tests release:valgrind -LE 'timing|session' -E 'support|embedded|crowd|cluster_re(direct|fusal)|garbage|golden|oom|process_faults|(redis|wire)_tls|wire_fork|multi_edge|cpp|zk_tls'

# The headers of the kernel and of ZooKeeper are in the same folder as those of glibc, so musl's own must be searched
# first.
musl-build: CONFIGURE = "-DCMAKE_C_FLAGS=-idirafter /usr/include -idirafter /usr/include/$(shell cc -print-multiarch)"
musl-build: need-build-test-musl maybe-zkheaders
	@$(call build,musl,holdfast holdfast_static unit_tests wire_tests live_lock live_embedded cli_run_options)

musl: musl-build ## build with the C library musl, and run the unit tests and some others
	@echo "Left out: unit_support_slow_resolver and unit_support_host, which would load a library built for musl into a program built for glibc"
	@tools/run-tests musl -R '^(unit_|wire_|live_lock$$|live_embedded$$|cli_run_options$$)' -LE 'session|timing' -E 'slow_resolver|unit_support_host'

builds: need-build-test-lint maybe-zookeeper maybe-programs maybe-screens ## build what asan, tsan, lint and musl need
	@$(call build,asan,all)
	@$(call build,tsan,all)
	@$(call build,debug,generated)
	@$(MAKE) musl-build

sim: need-build-test ## run the simulators: make sim SEEDS=1000000
	@$(call build,release,sim sim_red)
	@build/release/tests/sim --seeds $(SEEDS)
	@build/release/tests/sim_red --seeds $(SEEDS)

# Without Java or the other servers it says what it leaves out.
differential: SEEDS = 1000
differential: need-build-test ## play the same calls on several servers, the model and Redisson: make differential SEEDS=10000
	@for group in servers interop; do \
		tools/need $$group || echo "differential: continuing without $$group"; \
	done
	@$(call build,release,differential)
	@tools/run-differential $(SEEDS) $(FIRST)

mixed: need-build-test ## run all kinds mixed, 16 threads in each of 4 processes: make mixed SECONDS=60
	@$(call build,release,live_mixed_crowd)
	@build/release/tests/live_mixed_crowd $(SECONDS)

torture: need-build-test ## run commands under locks through random faults: make torture ROUNDS=1000
	@$(call build,release,torture)
	@build/release/tests/torture --rounds $(ROUNDS)

failovers: ROUNDS = 50
failovers: need-build-test ## replace masters in a row and judge all beliefs: make failovers ROUNDS=50
	@$(call build,release,live_failovers_serial)
	@build/release/tests/live_failovers_serial $(ROUNDS)

torture-live: need-build-test maybe-zookeeper ## check what processes believe through faults on real servers: make torture-live MINUTES=60
	@$(call build,release,torture_live)
	@tools/run-torture --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(if $(SITES),--sites $(SITES))

torture-short: need-build-test maybe-zookeeper ## the same in 5 minutes, without Java
	@$(call build,release,torture_live)
	@build/release/tests/torture_live --minutes 3.5 $(if $(SEED),--seed $(SEED))

torture-mutants: need-build-test ## show that torture notices a library that is broken on purpose, 15 minutes
	@$(call build,release,torture_mutants)
	@tools/torture-mutants

fuzz: need-build-test-fuzz ## fuzz each target for a while: make fuzz SECONDS=600
	@$(call build,fuzz,fuzzers)
	@tools/run-fuzz $(SECONDS)

# Packages that only some peers or the plots need may be missing: the harness says what it leaves out.
bench: need-build-bench ## compare Holdfast with others, 70 minutes: make bench BENCH='--work 1,3'
	@for group in plots interop zookeeper; do \
		tools/need $$group || echo "bench: continuing without $$group"; \
	done
	@$(call build,release,bench)
	@bench/run $(BENCH)

bench-quick: need-build-bench ## the same in 5 minutes: only the limits and Redisson
	@$(call build,release,bench)
	@bench/run --quick $(BENCH)

lint: need-build-test-lint ## check includes, prose and format, and run the linters
	@$(call build,debug,generated)
	@tools/lint build/debug

format: need-lint ## format all C files
	@tools/lint --list-c | xargs clang-format -i

install: CONFIGURE = "-DCMAKE_INSTALL_PREFIX=$(prefix)"
install: need-build maybe-zkheaders maybe-programs ## install: make install prefix=/usr DESTDIR=/tmp/stage
	@$(call build,release,holdfast holdfast_static holdfast_command holdfast_programs)
	@DESTDIR="$(DESTDIR)" tools/install add "$(prefix)"

uninstall: ## remove what make install installed, with the same prefix and DESTDIR
	@DESTDIR="$(DESTDIR)" tools/install remove "$(prefix)"

check-install: need-build-install ## install into a temporary folder, build programs against it, and uninstall
	@tools/check-install

# It clones what is committed. Its packages and its bare Debian are kept in build/check-fresh for the next run.
check-fresh: need-fresh ## run the README's commands on a bare Debian, three times, half an hour; needs root
	@tools/check-fresh

clean: ## remove everything that was built
	rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r target text; do printf '  %-14s %s\n' "$$target" "$$text"; done

# need-GROUP-GROUP installs the missing packages of these groups, all at once.
need-%:
	@mkdir -p build
	@tools/need $(subst -, ,$*)

# Without a server the tests that need one are skipped; without headers they are not built. Both say so.
maybe-zookeeper:
	@tools/need zookeeper || echo "make: continuing without ZooKeeper"

# Without it the test that needs it is skipped, and says so.
maybe-prometheus:
	@tools/need prometheus || echo "make: continuing without Prometheus"

# Without them the library is still built, and zk:// URLs return HF_ENOTSUP.
maybe-zkheaders:
	@tools/need zkheaders || echo "make: continuing without ZooKeeper's headers, and so without zk:// URLs"

# Commands that are programs of their own, and what their screens are tested with.
maybe-programs:
	@tools/need programs || echo "make: continuing without ncurses or libevent, and so without holdfast top or holdfast web"

maybe-screens:
	@tools/need screens || echo "make: continuing without pyte, which the test of holdfast top reads the screen with"

maybe-browser:
	@tools/need browser || echo "make: continuing without a browser, which the test of holdfast web needs"

.NOTPARALLEL:
.PHONY: all demo test sessions test-servers interop asan tsan msan long builds valgrind musl musl-build sim differential mixed torture \
	failovers torture-live torture-short torture-mutants fuzz bench bench-quick lint format install uninstall \
	check-install check-fresh clean help maybe-zookeeper maybe-zkheaders maybe-prometheus maybe-programs \
	maybe-screens maybe-browser
