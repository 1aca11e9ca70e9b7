# SPDX-License-Identifier: MIT
# `make help` lists the targets. Quiet unless V=1; SAN=address,undefined or SAN=thread builds with
# sanitizers into a folder of its own.

VERSION := 0.1.0
comma   := ,
BUILD   := build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
PREFIX  ?= /usr/local
CC      ?= gcc
CLANG   ?= clang
Q       := $(if $(V),,@)
JOBS    ?= $(shell nproc)
SUDO    := $(if $(filter 0,$(shell id -u)),,sudo)

# With sanitizers GCC takes pointers for NULL, and arrays for empty, that are not: told, and no errors.
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wconversion -Werror=switch $(if $(CI),$(if $(SAN),,-Werror))
CPPFLAGS := -D_GNU_SOURCE -DTAILLIGHT_VERSION='"$(VERSION)"' -I. -I$(BUILD)
CFLAGS   := -std=gnu17 -O2 -g -fPIC -fno-semantic-interposition -fno-omit-frame-pointer $(WARNINGS) \
            $(if $(SAN),-fsanitize=$(SAN))
LDFLAGS  := $(if $(SAN),-fsanitize=$(SAN))
PACKAGES := libevent libevent_pthreads yaml-0.1 jansson gsl sqlite3 hiredis libmemcached openssl libnghttp2 libbpf \
            libzstd zlib libelf libdw libtraceevent
# Copied to a host behind ssh, the programs find the libraries that were copied with them.
BESIDE   := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN'
LDLIBS    = $(shell pkg-config --libs $(PACKAGES)) -lipt -lstdc++ -lpthread -lm

# What the program is made of; some sources are programs of their own.
folders  := base workloads loadgen profiler shim analysis experiments
preload  := $(wildcard shim/preload*.c)
programs := workloads/lab/labserver.c
sources  := $(filter-out $(preload) $(programs),$(sort $(shell find $(folders) -name '*.c' ! -name '*.bpf.c')))
objects  := $(sources:%.c=$(BUILD)/%.o)
library  := $(BUILD)/libtaillight.a
# Tests and benchmarks share one: what changed is then linked once, not into each of them.
shared   := $(BUILD)/libtaillight.so
bpf      := $(wildcard profiler/bpf/*.bpf.c)
skeletons := $(bpf:profiler/bpf/%.bpf.c=$(BUILD)/profiler/bpf/%.skel.h)
tests    := $(patsubst %.c,$(BUILD)/%,$(shell find tests -name 'test_*.c'))
benches  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/bench_*.c))
# Programs that tests run: what injects faults, what scores the diagnosis of them, what writes the
# documentation's tables.
helpers  := $(patsubst %.c,$(BUILD)/%,$(filter-out %.bpf.c,$(wildcard tests/faults/*.c) tests/tree/tables.c tests/lab/lab_check.c tests/lab/user_time.c tests/lab/function_time.c tests/analysis/inject_mismatches.c))
fuzzers  := $(patsubst %.c,$(BUILD)/%,$(shell find tests -name 'fuzz_*.c'))

.PHONY: all deps deps-check demo check check-long check-trust lab bench fuzz corpora lint install uninstall deb picture help clean format tables
.DELETE_ON_ERROR:

all: $(BUILD)/taillight $(if $(preload),$(BUILD)/libtaillight-shim.so) \
     $(if $(wildcard $(programs)),$(BUILD)/labserver)
	@:

help:
	@echo 'all         build $(BUILD)/taillight, $(BUILD)/libtaillight-shim.so, $(BUILD)/labserver'
	@echo 'deps        install what building and running needs (Debian packages; sudo when not root)'
	@echo 'demo        deps, build, run the quickstart, print the verdict and the report'"'"'s path'
	@echo 'check       deps, build, run the tests (17 minutes on two slow cores); TEST=word runs those with it in their'
	@echo '            path, TAILLIGHT_NO_SKIP=1 forbids skips'
	@echo 'check-long  the tests that take longer'
	@echo 'check-trust what may not happen to servers, runs and files (tests/trust.list; half an hour on two slow cores);'
	@echo '            installs more servers'
	@echo 'lab         QEMU 10 and what makes an Intel PT of it, for tests/lab/lab.sh (docs/lab.md)'
	@echo 'bench       the benchmarks, all or BENCH=name; tables, and $(BUILD)/bench/<name>.json; of BENCH=loadgen'
	@echo '            also beside memtier_benchmark and mutilate, where they were built in PEERS=folder'
	@echo 'fuzz        each fuzz target for FUZZ_SECONDS (30); FUZZ=word those with it in their path'
	@echo 'corpora     writes the corpora that make check replays from what make fuzz has found'
	@echo 'lint        clang-tidy, clang-format, cppcheck and shellcheck; LINT=path only what is there'
	@echo 'tables      writes the tables of events, causes, protocols and keys into the documentation'
	@echo 'picture     the README'"'"'s, of the page of RUN=FOLDER'
	@echo 'format      clang-format over the tree'
	@echo 'compile_commands.json  how each file is compiled, for editors and clang tools'
	@echo 'install     into PREFIX ($(PREFIX)), below DESTDIR when that is set'
	@echo 'uninstall   takes away just that'
	@echo 'deb         $(BUILD)/taillight_$(VERSION)_ARCH.deb, and its debug symbols beside it'
	@echo 'clean       remove what was built'
	@echo 'V=1 shows commands; SAN=address,undefined or SAN=thread builds with sanitizers into a folder'
	@echo 'of its own; CI=1 makes warnings errors; CC, CLANG are the compilers, BUILD the folder'

# --- the program -----------------------------------------------------------------------------

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo '  CC    $<')
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(library): $(objects)
	$(if $(Q),@echo '  AR    $@')
	$(Q)rm -f $@ && ar rcs $@ $^

$(shared): $(objects)
	$(if $(Q),@echo '  LD    $@')
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ $(LDLIBS)

$(BUILD)/taillight: $(BUILD)/taillight.o $(library)
	$(if $(Q),@echo '  LD    $@')
	$(Q)$(CC) $(LDFLAGS) $(BESIDE) -o $@ $^ $(LDLIBS)

# The report's page lies inside the program; the compiler does not see which files that takes.
page_files := $(sort $(wildcard $(addprefix analysis/report/page/assets/*.,html css js)))
$(BUILD)/analysis/report/page/page_files.inc: $(page_files) analysis/report/page/assets
	@mkdir -p $(@D)
	$(Q)printf 'ASSET(%s, "%s")\n' $(foreach file,$(notdir $(page_files)),$(subst .,_,$(file)) $(file)) >$@
$(BUILD)/analysis/report/page/page_write.o: $(BUILD)/analysis/report/page/page_files.inc $(page_files)

$(BUILD)/analysis/decomposition/categories.o: analysis/decomposition/categories.csv

$(BUILD)/workloads/presets.o: $(wildcard workloads/*.yaml)

# --- the shim: lives in other people's processes, so it links nothing but libc -----------------

preloaded := $(preload:%.c=$(BUILD)/%.o)
$(preloaded): CFLAGS := $(filter-out -fsanitize=%,$(CFLAGS)) -fvisibility=hidden
$(BUILD)/libtaillight-shim.so: $(preloaded)
	$(if $(Q),@echo '  LD    $@')
	$(Q)$(CC) -shared -Wl,-z,defs -o $@ $^ -ldl

$(BUILD)/labserver: $(BUILD)/workloads/lab/labserver.o $(library)
	$(if $(Q),@echo '  LD    $@')
	$(Q)$(CC) $(LDFLAGS) $(BESIDE) -o $@ $^ $(LDLIBS)

# --- BPF ---------------------------------------------------------------------------------------

# Clang has no <asm/types.h> of its own for this target; the compiler's triplet says where it is.
bpf_include := $(addprefix -idirafter /usr/include/,$(shell $(CC) -print-multiarch))

$(BUILD)/%.bpf.o: %.bpf.c base/connection.h base/hash.h $(wildcard profiler/bpf/*.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo '  BPF   $<')
	$(Q)$(CLANG) -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Wno-unused-parameter -I. $(bpf_include) -c $< -o $@

# Kept for the next build: make would take them for steps on the way, and remove them at its end.
.SECONDARY: $(skeletons:.skel.h=.bpf.o) $(BUILD)/tests/faults/inject.bpf.o
$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(if $(Q),@echo '  SKEL  $@')
	$(Q)bpftool gen skeleton $< > $@

$(filter $(BUILD)/profiler/%,$(objects)): $(skeletons)

# --- tests -------------------------------------------------------------------------------------

# Benchmarks link as the program does: calls into a shared library would be part of what they measure.
$(BUILD)/tests/bench/%: tests/bench/%.c $(library)
	@mkdir -p $(@D)
	$(if $(Q),@echo '  BENCH $@')
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(library) $(LDLIBS) -lcmocka

# Quick to compile: what tests call is compiled as it is used, and a clean build's time is half theirs. Quick
# to link, too: there are hundreds of them, each with all libraries, and GNU ld takes three times as long.
TEST_CFLAGS = $(filter-out -O2,$(CFLAGS))
TEST_LDFLAGS := $(LDFLAGS) $(if $(SAN),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
$(BUILD)/tests/%: tests/%.c | $(shared)
	@mkdir -p $(@D)
	$(if $(Q),@echo '  TEST  $@')
	$(Q)$(CC) $(CPPFLAGS) $(TEST_CFLAGS) $(TEST_LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(shared) \
	    -Wl,-rpath,$(abspath $(BUILD)) $(LDLIBS) -lcmocka

$(BUILD)/tests/faults/inject: $(BUILD)/tests/faults/inject.skel.h

# The fuzzers' corpora are replayed by one program, in which each fuzzer's entry point has its name.
replayed := $(fuzzers:=.replay.o)
$(BUILD)/tests/%.replay.o: tests/%.c
	@mkdir -p $(@D)
	$(if $(Q),@echo '  CC    $@')
	$(Q)$(CC) $(CPPFLAGS) -DLLVMFuzzerTestOneInput=$(notdir $*) $(TEST_CFLAGS) -MMD -MP -MF $@.d -c $< -o $@
$(BUILD)/tests/fuzzers.inc: $(fuzzers:$(BUILD)/%=%.c) Makefile
	@mkdir -p $(@D)
	$(Q)printf 'FUZZER(%s, "%s")\n' $(foreach fuzzer,$(fuzzers),$(notdir $(fuzzer)) $(fuzzer:$(BUILD)/%=%)) >$@
$(BUILD)/tests/test_corpora: tests/test_corpora.c $(replayed) $(BUILD)/tests/fuzzers.inc | $(shared)
	$(if $(Q),@echo '  TEST  $@')
	$(Q)$(CC) $(CPPFLAGS) $(TEST_CFLAGS) $(TEST_LDFLAGS) -MMD -MP -MF $@.d -o $@ $< $(replayed) $(shared) \
	    -Wl,-rpath,$(abspath $(BUILD)) $(LDLIBS) -lcmocka

$(BUILD)/tests/bench/bench_schedule $(BUILD)/tests/bench/bench_wire: LDLIBS += -lpcap

# --- what it needs -----------------------------------------------------------------------------

debian := build-essential pkg-config clang llvm bpftool libbpf-dev libelf-dev libdw-dev zlib1g-dev \
          libevent-dev libssl-dev libnghttp2-dev libhiredis-dev libmemcached-dev libipt-dev libgsl-dev libyaml-dev \
          libjansson-dev libpcap0.8 libpcap0.8-dev libsqlite3-dev libzstd-dev libtraceevent-dev memcached iproute2 procps \
          openssh-client
debian_check := libcmocka-dev nftables openssh-server chromium sqlite3 redis-server nginx-light openssl sasl2-bin python3 python3-jsonschema python3-yaml python3-prometheus-client linux-perf xz-utils jq groff-base protobuf-compiler librsvg2-bin \
                qemu-system-x86 cpio busybox-static kmod # the guest of tests/guest
debian_long := python3-grpcio gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user fish zsh binutils dpkg-dev prometheus curl liburing-dev golang-go lighttpd gunicorn haproxy postgresql redis-tools nodejs default-jdk-headless # of experiments/causes
debian_bench := redis-tools libmemcached-tools wrk nghttp2-client # the peers
debian_trust := haproxy lighttpd postgresql postgresql-client nodejs gunicorn openjdk-17-jdk-headless golang-go redis-tools # servers, and what asks them
debian_deb := binutils dpkg-dev
debian_lint := clang-tidy clang-format cppcheck shellcheck jq

# Installs only what dpkg does not already have, so a prepared machine needs neither network nor root.
# RUNLEVEL=1 keeps the packages' servers from being started: each test starts its own.
define install_debian
	$(Q)there=$$(dpkg-query -W -f='$${Package} $${db:Status-Status} ' $(1) 2>/dev/null); \
	missing=$$(for p in $(1); do case " $$there" in *" $$p installed "*) ;; *) echo $$p ;; esac; done); \
	if [ -n "$$missing" ]; then echo "  DEPS  $$missing" | tr '\n' ' '; echo; \
	    $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef

deps:
	$(call install_debian,$(debian))

deps-check: deps
	$(call install_debian,$(debian_check))

check: deps-check
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests-built
	$(Q)tests/run_tests.sh $(BUILD)

.PHONY: tests-built
tests-built: $(shared) $(tests) $(benches) $(helpers)
	@:

check-long: deps-check
	$(call install_debian,$(debian_long))
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests-built
	$(Q)TAILLIGHT_LONG=1 tests/run_tests.sh $(BUILD)

check-trust: deps-check
	$(call install_debian,$(debian_trust))
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests-built
	$(Q)TAILLIGHT_TRUST=1 tests/run_tests.sh $(BUILD)

# Other people's QEMU and the modules of another kernel: made by a script, which says what is missing.
lab: deps-check
	$(Q)CC='$(CC)' CI=$(CI) tests/lab/make_lab.sh $(BUILD)

demo: deps
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all
	$(Q)$(BUILD)/taillight run experiments/quickstart.yaml || [ $$? -eq 4 ] # 4: no verdict, and why

picture: deps-check
	$(Q)[ -e '$(RUN)/report.html' ] || { echo 'make picture RUN=FOLDER: that of a run, with its report.html' >&2; exit 2; }
	$(Q)profile=$$(mktemp -d) && trap 'rm -rf "$$profile"' EXIT && \
	    python3 tests/analysis/report/picture.py chromium "$$profile" '$(RUN)/report.html' docs/images/report

bench: deps-check
	$(call install_debian,$(debian_bench))
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests-built
	$(Q)tests/run_benches.sh $(BUILD) $(BENCH)

# Fuzzers need the whole library instrumented, so it is built again by clang in a folder of its own.
# Words that an input is made of stand in fuzz_*.dict beside the fuzzer.
FUZZ_SECONDS ?= 30
fuzzed := $(foreach fuzzer,$(fuzzers),$(if $(findstring $(or $(FUZZ),fuzz_),$(fuzzer)),$(fuzzer)))
fuzz:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) CC=$(CLANG) SAN=fuzzer-no-link,address,undefined fuzzers-run

.PHONY: fuzzers-run
fuzzers-run: $(fuzzed)
	$(Q)for fuzzer in $(fuzzed); do echo "  FUZZ  $$fuzzer"; mkdir -p $$fuzzer.corpus; \
	    words=$${fuzzer#$(BUILD)/}.dict; tests/corpus.sh unpack $${words%.dict}.corpus $$fuzzer.corpus; [ -f $$words ] && words=-dict=$$words || words=; \
	    UBSAN_OPTIONS=halt_on_error=1 $$fuzzer $$words -max_total_time=$(FUZZ_SECONDS) -timeout=60 -print_final_stats=0 -verbosity=0 \
	        -artifact_prefix=$$fuzzer- $$fuzzer.corpus || exit 1; done

corpora:
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) CC=$(CLANG) SAN=fuzzer-no-link,address,undefined corpora-packed

.PHONY: corpora-packed
corpora-packed: $(fuzzed)
	$(Q)for fuzzer in $(fuzzed); do tests/corpus.sh pack $$fuzzer $${fuzzer#$(BUILD)/}.corpus || exit 1; done

$(fuzzers): $(BUILD)/%: %.c $(library)
	@mkdir -p $(@D)
	$(if $(Q),@echo '  FUZZ  $@')
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer,address,undefined -MMD -MP -MF $@.d -o $@ $< \
	    $(library) $(LDLIBS)

# What is installed, as FOLDER:FILE; the folders lie in PREFIX. All that the man pages name is among it.
examples  := $(wildcard experiments/*.yaml experiments/*/*.yaml experiments/*/*.md workloads/*.yaml)
installed := bin:$(BUILD)/taillight lib/taillight:$(BUILD)/libtaillight-shim.so lib/taillight:$(BUILD)/labserver \
    $(addprefix share/man/man1:,$(wildcard docs/man/*.1)) \
    $(addprefix share/doc/taillight:,README.md LICENSE $(wildcard docs/*.md docs/*.json docs/*.service)) \
    $(addprefix share/doc/taillight/images:,$(wildcard docs/images/*)) \
    $(foreach e,$(examples),share/taillight/$(patsubst %/,%,$(dir $(e))):$(e)) \
    share/bash-completion/completions:docs/completions/bash/taillight \
    share/zsh/site-functions:docs/completions/zsh/_taillight \
    share/fish/vendor_completions.d:docs/completions/fish/taillight.fish
each_installed = for each in $(installed); do file=$${each\#*:}; target=$(DESTDIR)$(PREFIX)/$${each%%:*}/$${file\#\#*/}; \
    $(1) || exit 1; done

# The documents lie beside each other there, and the examples in a folder of their own.
doc_links     := s|](docs/|](|g; s|](\.\./README|](README|g; s|](\(\.\./\)\{0,1\}\(experiments\)/|](../../taillight/\2/|g
example_links := s|](\.\./\.\./docs/|](../../../doc/taillight/|g
install: all
	$(Q)$(call each_installed,install -D -m $$([ -x $$file ] && echo 755 || echo 644) $$file $$target && \
	    case $$file in (experiments/*.md) sed -i '$(example_links)' $$target ;; (*.md) sed -i '$(doc_links)' $$target ;; esac)

# What install put there, and the folders that are then empty.
uninstall:
	$(Q)$(call each_installed,rm -f $$target)
	$(Q)for ours in lib/taillight share/taillight share/doc/taillight; do \
	    ! [ -d $(DESTDIR)$(PREFIX)/$$ours ] || find $(DESTDIR)$(PREFIX)/$$ours -depth -type d -empty -delete; done

deb: all
	$(call install_debian,$(debian_deb))
	$(Q)docs/packaging/make_deb.sh $(BUILD) $(VERSION)

# Writes the program's tables and keys into the documentation; tests of these names compare them.
tables: all $(BUILD)/tests/tree/tables
	$(Q)BUILD=$(BUILD) tests/tree/test_tables.sh --write
	$(Q)BUILD=$(BUILD) tests/tree/test_manual_keys.sh --write

# --- what reads the sources --------------------------------------------------------------------

# Which findings count, and why others do not: .clang-tidy, .clang-format, .cppcheck, .shellcheckrc.
# All four are asked before it fails. (To make itself, LINT is the name of a program.)
LINT   := $(if $(filter default,$(origin LINT)),.,$(LINT))
linted = git ls-files -- $(LINT) | grep -E $(1) | xargs -r
# Macros of libraries' headers, which cppcheck does not read, that begin a loop.
loops  := json_array_foreach(a,i,v) json_object_foreach(o,k,v) json_object_foreach_safe(o,n,k,v) \
          bpf_object__for_each_program(p,o) bpf_object__for_each_map(m,o)

lint: deps-check
	$(call install_debian,$(debian_lint))
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) compile_commands.json $(skeletons) \
	    $(BUILD)/tests/faults/inject.skel.h $(BUILD)/analysis/report/page/page_files.inc
	$(Q)failed=; \
	$(call linted,'\.[ch]$$') clang-format --dry-run -Werror || failed="$$failed clang-format"; \
	$(call linted,'\.sh$$|^\.ci/run$$') shellcheck -S warning || failed="$$failed shellcheck"; \
	$(call linted,'\.c$$') cppcheck -j$(JOBS) -q --enable=warning --error-exitcode=1 --std=c17 -I. \
	    --suppressions-list=.cppcheck --max-configs=1 -D_GNU_SOURCE $(foreach l,$(loops),'-D$(l)=for(;;)') \
	    || failed="$$failed cppcheck"; \
	$(call c_files,$(LINT)) | xargs -r -P$(JOBS) -n4 clang-tidy -p . --quiet 2>/dev/null || failed="$$failed clang-tidy"; \
	[ -z "$$failed" ] || { echo "  LINT  findings of$$failed"; exit 1; }

# Not among them: what another compiler compiles (BPF, and a module of the guest's kernel), and QEMU's plugins.
c_files = git ls-files -- $(1) | grep '\.c$$' | grep -v -e '\.bpf\.c$$' -e '^tests/guest/.*/' -e '^tests/lab/[a-z]*_plugin\.c'

# Without -Werror, which would let clang-tidy fail for warnings that .clang-tidy does not ask for.
compile_commands.json: Makefile $(sort $(dir $(sources) $(preload) $(programs)))
	$(Q)$(call c_files,.) | \
	    jq -nR --arg flags "$(subst ",\",$(CPPFLAGS) $(filter-out -Werror,$(CFLAGS)))" --arg directory '$(CURDIR)' \
	    '[inputs | {$$directory, file: ., command: "$(CC) \($$flags) -c \(.)"}]' >$@

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build build-*

-include $(objects:.o=.d) $(preloaded:.o=.d) $(BUILD)/taillight.d $(programs:%.c=$(BUILD)/%.d) $(tests:=.d) $(benches:=.d) $(helpers:=.d) $(fuzzers:=.d) \
    $(replayed:=.d)
