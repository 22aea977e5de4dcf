# mnp: Markov Neural Processes in C.
#
#   make            build/mnp, build/libmnp.a, build/libmnp.so
#   make demo       set up, build, train a small model and draw pictures
#   make test       set up, build, run every test
#   make help       every target and switch
#
# Sources are found by wildcard: a new file in src/, cli/, bench/, tests/ or examples/ needs no edit
# here. Anything longer than a few lines lives in scripts/. What the compiler can do, nvcc and an MPI
# are found by scripts/detect.sh, which writes $(BUILD)/config.mk; every other library is loaded when
# it is first wanted (util/syslib.h), so that the build is the same whatever is installed.

# ---- switches (make help says what they do) ----------------------------------------------------
PREFIX       ?= /usr/local
DESTDIR      ?=
PORTABLE     ?= 0
SETUP        ?= 1
WERROR       ?= 1
SAN          ?=
COVERAGE     ?= 0
HARDEN       ?= 1
T            ?=
TESTS        ?= unit contract property golden fault fuzz e2e
FUZZ_SECONDS ?= 60

# Every flavour of the build has a folder of its own, so that they do not rebuild each other.
BUILD ?= build$(if $(filter 1,$(PORTABLE)),-portable)$(if $(SAN),-$(if \
    $(findstring thread,$(SAN)),tsan,asan))$(if $(filter 1,$(COVERAGE)),-coverage)

MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0) # a -j on the command line wins
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif
.DEFAULT_GOAL := all
# One short line per file; V=1 shows the commands.
say = $(if $(filter 1,$(V)),,@printf '  %-5s %s\n' $1 $@; )
comma := ,
space := $(subst ,, )
.DELETE_ON_ERROR:
FORCE:

VERSION := $(shell sed -n 's/^.define MNP_VERSION  *"\(.*\)"/\1/p' include/mnp.h)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))

# ---- what the machine offers -------------------------------------------------------------------
# config.mk is made before anything else is read; detect.sh leaves it alone while its answers hold.
# demo and test set up first, once: make starts again when config.mk has changed. install takes what
# was built: root may have another PATH.
GOALS := $(or $(MAKECMDGOALS),all)
PYTHON_GOALS := wheel wheel-cuda test-python
WEB_GOALS := wasm test-web
SET_UP = PORTABLE=$(PORTABLE) SETUP=$(SETUP) scripts/setup.sh --note $(BUILD)/setup-tried
ifneq ($(filter-out clean help format uninstall setup tsan asan coverage fuzz,$(GOALS)),)
include $(BUILD)/config.mk
endif
$(BUILD)/config.mk: FORCE
	@mkdir -p $(@D)
	$(if $(MAKE_RESTARTS),,$(if $(filter demo test test-long,$(GOALS)),@$(SET_UP) || true))
	$(if $(MAKE_RESTARTS),,$(if $(filter $(PYTHON_GOALS),$(GOALS)),@$(SET_UP) python || true))
	$(if $(MAKE_RESTARTS),,$(if $(filter $(WEB_GOALS),$(GOALS)),@$(SET_UP) web || true))
	@CC='$(CC)' PORTABLE=$(PORTABLE) KEEP=$(if $(filter install,$(GOALS)),1) scripts/detect.sh $@

# ---- flags -------------------------------------------------------------------------------------
# Floating point is strict everywhere: no fast-math. Only the kernels in src/backend/cpu/simd may
# contract a*b + c; errno and traps of the maths library are used nowhere.
INSTRUMENT := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
              $(if $(filter 1,$(COVERAGE)),--coverage)
CFLAGS     ?= $(if $(strip $(INSTRUMENT)),-O1,-O2) -g
SIMD_OPT   ?= $(if $(strip $(INSTRUMENT)),-O1,-O3)

# Instrumented code confuses the compiler's flow analysis; the plain build is the one that must be
# free of warnings.
WARNINGS := -Wall -Wextra -Wconversion $(if $(filter 1,$(WERROR)),-Werror) \
            $(if $(strip $(INSTRUMENT)),-w)
DEFINES  := -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
            $(foreach p,AVX2 AVX512,$(if $(HAVE_$p),-DMNP_HAVE_$p)) \
            $(if $(filter 1,$(PORTABLE)),-DMNP_PORTABLE)
# A command-line CFLAGS or CPPFLAGS adds to these, and cannot take them away.
BASE := -std=c17 $(WARNINGS) -fPIC -fvisibility=hidden -pthread -ffp-contract=off -fno-math-errno \
        $(DEFINES) -Iinclude
LIBS := -lm -ldl -pthread

# Stack protector, fortified C library (which asks for optimisation), read-only relocations, and a
# command that is loaded anywhere. Instrumented builds have checks of their own.
ifeq ($(HARDEN)$(strip $(INSTRUMENT)),1)
HARDEN_CC   := $(HARDEN_CFLAGS)
BASE        += $(HARDEN_CC) $(if $(filter-out -O0,$(filter -O%,$(CFLAGS))),$(FORTIFY_CFLAGS))
HARDEN_LINK := $(HARDEN_LIBS)
PIE         := $(PIE_LIBS)
endif

# CUDA needs nvcc; it is built when there are .cu files and nvcc was found (CUDA=0 leaves it out).
# The kernels are a shared object of their own, which the library loads on demand: nothing else needs
# CUDA, at build time or at run time. They are two sets (src/backend/cuda/device/target.h): the full
# one for compute capability 9.0, and the general one, in two halves, for 8.0 and later, which the
# driver compiles when a GPU first runs it, unless CUDA_ALL=1 compiles it here.
CU_SRC     := $(wildcard src/backend/cuda/*/*.cu)
CU_GENERAL_32 := $(addprefix src/backend/cuda/,kernels/functions.cu kernels/update.cu)
CU_GENERAL_16 := $(CU_GENERAL_32) $(wildcard src/backend/cuda/wide/*.cu)
CUDA   ?= $(if $(CU_SRC),$(if $(strip $(INSTRUMENT) $(filter 1,$(PORTABLE))),,$(HAVE_NVCC)))
CUDA_ALL  ?= 0
CUDA_EACH := 80 90 100 120 # code for one also runs on later minor versions
CUDA_FULL := -gencode arch=compute_90a,code=sm_90a
CUDA_MOST := -gencode arch=compute_80,code=compute_80 $(if \
    $(filter 1,$(CUDA_ALL)),-Xfatbin -compress-all $(foreach k,$(CUDA_EACH),-gencode arch=compute_$k$(comma)code=sm_$k))
NVCC_FLAGS := -O3 -std=c++17 -maxrregcount 128 -Iinclude -Isrc -I. \
              -Xcompiler $(subst $(space),$(comma),$(strip -fPIC -fvisibility=hidden $(HARDEN_CC))) \
              $(patsubst -Wl$(comma)%,-Xlinker %,$(HARDEN_LINK))

# MPI likewise (MPI=0 leaves it out), and NCCL between GPUs: what carries numbers between processes
# are shared objects of their own.
MPI ?= $(HAVE_MPI)

COMPILE  = $(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(INSTRUMENT)
DEPFLAGS = -MMD -MP -MF $@.d -MT $@
LINK     = -Wl,--as-needed $(HARDEN_LINK) $(LDFLAGS) $(INSTRUMENT)
# of programs
LINK_RUN = $(PIE) $(LINK)

# ---- sources -----------------------------------------------------------------------------------
SIMD_SRC := $(wildcard src/backend/cpu/simd/*.c)
MPI_SRC  := $(wildcard src/comm/mpi/*.c)
NCCL_SRC := $(wildcard src/comm/nccl/*.c)
LIB_SRC  := $(filter-out $(SIMD_SRC) $(MPI_SRC) $(NCCL_SRC),$(sort $(shell find src util -name '*.c')))
# What a request is answered with, portable C; serve/wasm.c is of the WebAssembly module alone.
SERVE_SRC := $(filter-out serve/wasm.c,$(wildcard serve/*.c))
CLI_SRC  := $(wildcard cli/*.c) $(SERVE_SRC) $(shell find lab -name "*.c" 2>/dev/null)
MNP_SRC  := $(CLI_SRC) $(if $(CLI_SRC),$(wildcard bench/*.c))

ISAS          := base $(if $(HAVE_AVX2),avx2) $(if $(HAVE_AVX512),avx512)
LIB_OBJ       := $(LIB_SRC:%.c=$(BUILD)/obj/%.o) \
                 $(foreach i,$(ISAS),$(SIMD_SRC:src/backend/cpu/simd/%.c=$(BUILD)/obj/simd-$i/%.o))
MNP_OBJ       := $(MNP_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/serve/page.o
LIB           := $(BUILD)/libmnp.a
SHLIB         := $(BUILD)/libmnp.so
MNP           := $(if $(CLI_SRC),$(BUILD)/mnp)
CUDA_LIB      := $(if $(filter 1,$(CUDA)),$(BUILD)/libmnp_cuda.so)
CUDA_OBJ      := $(CU_SRC:%=$(BUILD)/obj/%.o) $(foreach k,32 16,$(CU_GENERAL_$k:%=$(BUILD)/obj/general-$k/%.o))
MPI_LIB       := $(if $(filter 1,$(MPI)),$(BUILD)/libmnp_mpi.so)
NCCL_LIB      := $(if $(CUDA_LIB),$(if $(HAVE_NCCL),$(BUILD)/libmnp_nccl.so))
EXAMPLES      := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c))
FUZZ_SRC      := $(if $(wildcard tests/fuzz/fuzz_main.c),\
                   $(filter-out %/fuzz_main.c,$(wildcard tests/fuzz/fuzz_*.c)))
FUZZERS       := $(FUZZ_SRC:%.c=$(BUILD)/%)
# Instrumented code is ten times slower: of the shell tests those that reach most of cli/.
SLOW_SH       := $(if $(filter 1,$(COVERAGE)),,$(addprefix tests/e2e/,test_predict.sh test_train.sh))
TEST_PROGRAMS := $(foreach d,$(filter-out fuzz,$(TESTS)),\
                   $(patsubst %.c,$(BUILD)/%,$(wildcard tests/$d/test_*.c)) \
                   $(if $(strip $(INSTRUMENT)),$(filter tests/$d/%,$(SLOW_SH)),$(wildcard tests/$d/*.sh)))\
                 $(if $(filter fuzz,$(TESTS)),$(FUZZERS))
ifneq ($(T),)
TEST_PROGRAMS := $(foreach p,$(TEST_PROGRAMS),$(if $(findstring $(T),$p),$p))
endif
TEST_BUILT    := $(filter $(BUILD)/%,$(TEST_PROGRAMS))

# ---- rules -------------------------------------------------------------------------------------
.PHONY: all demo setup test test-long $(PYTHON_GOALS) $(WEB_GOALS) bench lint format asan tsan emulator coverage fuzz fuzzers examples \
        install uninstall clean info help tests-built

all: $(LIB) $(SHLIB) $(MNP) $(CUDA_LIB) $(MPI_LIB) $(NCCL_LIB)

# Everything compiled depends on the flags it was compiled with.
FLAGS_NOW = $(VERSION) $(PREFIX) | $(COMPILE) | $(SIMD_OPT) | $(LINK_RUN) $(LIBS) | $(CXX) $(EMU_FLAGS)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' > $@

# cli/, serve/, lab/ and bench/ make the command. Only bench/, and cli/cmd_bench.c which includes its headers,
# see the inside of the library (scripts/check_includes.sh, tests/e2e/test_command.sh).
INSIDE := -Isrc
$(BUILD)/obj/cli/%.o $(BUILD)/obj/serve/%.o $(BUILD)/obj/lab/%.o: INSIDE :=
$(BUILD)/obj/cli/cmd_bench.o: INSIDE := -Isrc
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(INSIDE) -I. $(DEPFLAGS) -c $< -o $@

# The files of web/ as a part of the command; one that is gone makes it anew as well.
WEB := $(shell find web -type f 2>/dev/null | sort)
$(BUILD)/page-files: FORCE
	@mkdir -p $(@D)
	@echo '$(WEB)' | cmp -s - $@ || echo '$(WEB)' > $@
$(BUILD)/page.c: scripts/embed.sh $(BUILD)/page-files $(WEB)
	$(call say,GEN)scripts/embed.sh web > $@
$(BUILD)/obj/serve/page.o: $(BUILD)/page.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) -I. $(DEPFLAGS) -c $< -o $@

# Where the objects loaded on demand lie once installed; PREFIX is for make and make install alike.
$(BUILD)/obj/src/base/object.o: private BASE += -DMNP_LIBDIR='"$(PREFIX)/lib"'

# The CPU kernels: the same source once per instruction set, chosen at run time.
ISA_base   :=
ISA_avx2   := -mavx2 -mfma
ISA_avx512 := -mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma -mprefer-vector-width=512
define SIMD_RULE
$(BUILD)/obj/simd-$1/%.o: src/backend/cpu/simd/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,CC)$$(COMPILE) -Isrc -I. $$(SIMD_OPT) -ffp-contract=fast -fno-trapping-math $(ISA_$1) $$(DEPFLAGS) \
	    -c $$< -o $$@
endef
$(foreach i,base avx2 avx512,$(eval $(call SIMD_RULE,$i)))

$(BUILD)/obj/%.cu.o: %.cu $(BUILD)/cuda-flags
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(CUDA_FULL) -MMD -MP -MF $@.d -MT $@ -c $< -o $@
define GENERAL_RULE
$(BUILD)/obj/general-$1/%.cu.o: %.cu $(BUILD)/cuda-flags
	@mkdir -p $$(@D)
	$$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(CUDA_MOST) -DMNP_KERNELS_GENERAL=$1 -MMD -MP -MF $$@.d -MT $$@ \
	    -c $$< -o $$@
$(BUILD)/emulator/general-$1/%.o: % $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,EMU)$(CXX) $$(EMU_FLAGS) -DMNP_KERNELS_GENERAL=$1 $$(DEPFLAGS) -x c++ -c $$< -o $$@
endef
$(foreach k,32 16,$(eval $(call GENERAL_RULE,$k)))
CUDA_NOW = $(NVCC) $(NVCC_FLAGS) $(CUDA_FULL) $(CUDA_MOST)
$(BUILD)/cuda-flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_NOW)' | cmp -s - $@ || echo '$(CUDA_NOW)' > $@
$(BUILD)/libmnp_cuda.so: $(CUDA_OBJ)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(CUDA_FULL) -shared -cudart static $(CUDA_OBJ) -o $@

# The same kernels compiled for the CPU (tests/emulator): neither nvcc nor a GPU is needed, but a C++
# compiler and x86-64. Kernels compute addresses that they do not use.
EMULATOR  := $(if $(filter x86_64,$(shell uname -m)),$(if $(shell command -v $(CXX)),$(if \
    $(filter 1,$(PORTABLE)),,$(addprefix $(BUILD)/emulator/,test_cuda libmnp_cuda.so))))
EMU_OBJ   := $(patsubst %,$(BUILD)/emulator/%.o,$(CU_SRC) $(wildcard tests/emulator/*.cpp)) \
             $(foreach k,32 16,$(CU_GENERAL_$k:%=$(BUILD)/emulator/general-$k/%.o))
# The thread sanitizer sees kernels, and of the emulator what it is told (tests/emulator/races.h).
EMU_RACES := $(if $(findstring thread,$(SAN)),-DEMULATED_RACES)
EMU_PLAIN := $(if $(EMU_RACES),-fno-sanitize=thread)
EMU_FLAGS := -std=c++17 $(if $(strip $(INSTRUMENT)),-O1,-O2) -g -Wall -Wno-unknown-pragmas -Wno-sign-compare \
             -Wno-enum-compare -fPIC -fvisibility=hidden -Itests/emulator -Iinclude -Isrc -I. \
             -include cuda_runtime.h $(INSTRUMENT) $(if $(SAN),-fno-sanitize=pointer-overflow) $(EMU_RACES)
$(BUILD)/emulator/%.o: % $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,EMU)$(CXX) $(EMU_FLAGS) $(if $(filter %.cpp,$<),-O3 $(EMU_PLAIN)) $(DEPFLAGS) -x c++ -c $< -o $@
$(BUILD)/emulator/libmnp_cuda.so: $(EMU_OBJ)
	$(call say,LD)$(CXX) -shared $(INSTRUMENT) $(EMU_OBJ) -o $@
$(BUILD)/emulator/test_cuda: $(BUILD)/tests/contract/test_cuda
	@mkdir -p $(@D)
	@cp $< $@

$(BUILD)/libmnp_mpi.so: $(MPI_SRC) $(BUILD)/flags
	$(call say,LD)$(COMPILE) -Isrc -I. $(MPI_CFLAGS) $(DEPFLAGS) -shared $(LINK) $(MPI_SRC) $(MPI_LIBS) -o $@
$(BUILD)/libmnp_nccl.so: $(NCCL_SRC) $(BUILD)/flags
	$(call say,LD)$(COMPILE) -Isrc -I. $(NCCL_CFLAGS) $(DEPFLAGS) -shared $(LINK) $(NCCL_SRC) $(NCCL_LIBS) -o $@

# The module of the page: the library and serve/ for WebAssembly, one thread, with its 128-bit vectors.
# src/wasi has what its C library lacks. The linker takes what the exports need; the memory ends at 1 GiB.
WASM        := $(BUILD)/web/mnp.wasm
WASM_SRC    := $(LIB_SRC) $(wildcard serve/service*.c) serve/wasm.c
WASM_OBJ    := $(WASM_SRC:%.c=$(BUILD)/obj/wasm/%.o) $(SIMD_SRC:%.c=$(BUILD)/obj/wasm/%.o)
WASM_FLAGS   = $(WASM_COMPILER) -std=c17 $(WARNINGS) -fvisibility=hidden -ffp-contract=off -fno-math-errno \
               -include src/wasi/files.h -D_WASI_EMULATED_GETPID -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
               -D_Thread_local= -DMNP_PORTABLE -Iinclude
WASM_LINK   := -Wno-unused-command-line-argument -mexec-model=reactor -lwasi-emulated-getpid -lm \
               -Wl,--strip-all,--stack-first,-z,stack-size=1048576,--max-memory=1073741824
# small where it is not hot
WASM_OPT    := -Oz
$(BUILD)/obj/wasm/src/base/%.o $(BUILD)/obj/wasm/src/backend/cpu/%.o: WASM_OPT := -O2
$(BUILD)/obj/wasm/src/backend/cpu/simd/%.o: WASM_OPT := -O2 -ffp-contract=fast -fno-trapping-math
$(BUILD)/obj/wasm/%.o: %.c $(BUILD)/wasm-flags
	@mkdir -p $(@D)
	$(call say,WASM)$(WASM_FLAGS) $(WASM_OPT) -Isrc -I. $(DEPFLAGS) -c $< -o $@
WASM_NOW = $(WASM_FLAGS) $(WASM_OPT) $(WASM_LINK) $(WASM_OBJ)
$(BUILD)/wasm-flags: FORCE
	@mkdir -p $(@D)
	@echo '$(WASM_NOW)' | cmp -s - $@ || echo '$(WASM_NOW)' > $@
$(WASM): $(WASM_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)$(WASM_FLAGS) $(WASM_OBJ) $(WASM_LINK) -o $@

# A list of the objects, so that removing a source file also rebuilds the library.
$(BUILD)/objects: FORCE
	@mkdir -p $(@D)
	@echo $(LIB_OBJ) $(MNP_OBJ) | cmp -s - $@ || echo $(LIB_OBJ) $(MNP_OBJ) > $@

$(LIB): $(LIB_OBJ) $(BUILD)/objects
	@rm -f $@
	$(call say,AR)$(AR) qcs $@ $(LIB_OBJ)

$(SHLIB): $(LIB_OBJ) $(BUILD)/objects scripts/libmnp.map
	$(call say,LD)$(CC) -shared -Wl,-soname,libmnp.so.$(SOMAJOR) -Wl,--version-script=scripts/libmnp.map \
	    $(if $(SAN),,-Wl,-z,defs) $(CFLAGS) $(LINK) $(LIB_OBJ) $(LIBS) -o $@
	@ln -sf libmnp.so $(BUILD)/libmnp.so.$(SOMAJOR)

$(BUILD)/mnp: $(MNP_OBJ) $(LIB)
	$(call say,LD)$(CC) $(CFLAGS) $(LINK_RUN) $(MNP_OBJ) $(LIB) $(LIBS) -o $@

# Objects loaded on demand are looked for beside a program, not in the folders above.
PLUGINS_BESIDE = for part in cuda mpi nccl; do ln -sfn $(abspath $(BUILD))/libmnp_$$part.so $(@D)/; done

# Tests of what lies in cli/, serve/, lab/ and bench/: the linker takes what it needs.
$(BUILD)/command.a: $(filter-out %/main.o,$(MNP_OBJ))
	@rm -f $@
	$(call say,AR)$(AR) qcs $@ $^
$(BUILD)/tests/fuzz/fuzz_wells $(BUILD)/tests/unit/test_krige $(BUILD)/tests/unit/test_paired $(BUILD)/tests/unit/test_cells: $(BUILD)/command.a
$(BUILD)/tests/fuzz/fuzz_service $(addprefix $(BUILD)/tests/,unit/test_service unit/test_service_refused e2e/test_service): $(BUILD)/command.a
$(BUILD)/tests/fuzz/fuzz_http_header $(BUILD)/tests/unit/test_http_header: $(BUILD)/command.a
$(BUILD)/tests/web/native: $(BUILD)/command.a
$(BUILD)/tests/contract/test_cuda $(BUILD)/tests/contract/test_ops: $(BUILD)/command.a
# Tests see the inside of the library; examples only what a user sees.
$(BUILD)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz_main.c $(LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,TEST)$(COMPILE) -Isrc -Itests -I. $(DEPFLAGS) $(LINK_RUN) $< $(filter %/command.a,$^) $(if \
	    $(findstring fuzzer,$(SAN)),-fsanitize=fuzzer,tests/fuzz/fuzz_main.c) $(LIB) $(LIBS) -o $@
$(BUILD)/tests/%: tests/%.c $(LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,TEST)$(COMPILE) -Isrc -Itests -I. $(DEPFLAGS) $(LINK_RUN) $< $(filter %/command.a,$^) $(LIB) $(LIBS) -o $@
	@$(PLUGINS_BESIDE)
$(BUILD)/examples/%: examples/%.c $(LIB) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) $(DEPFLAGS) $(LINK_RUN) $< $(LIB) $(LIBS) -o $@
	@$(PLUGINS_BESIDE)

-include $(addsuffix .d,$(LIB_OBJ) $(MNP_OBJ) $(CUDA_OBJ) $(MPI_LIB) $(NCCL_LIB) $(TEST_BUILT) $(EXAMPLES) $(EMU_OBJ) $(WASM_OBJ))

# ---- what people ask for -----------------------------------------------------------------------
setup:
	@mkdir -p $(BUILD) && rm -f $(BUILD)/setup-tried
	@$(SET_UP)
examples: $(EXAMPLES)
fuzzers: $(FUZZERS)
tests-built: $(TEST_BUILT) $(if $(filter %/test_emulator.sh %/test_emulator_general.sh %/test_emulator_wide.sh %/test_emulator_wide_general.sh %/test_extend.sh %/test_kernels.sh,$(TEST_PROGRAMS)),$(EMULATOR)) $(CUDA_LIB) $(MPI_LIB) $(NCCL_LIB) $(if $(findstring tests/e2e/,$(TEST_PROGRAMS)),all $(EXAMPLES))

# only what it shows: the kernels for a GPU alone take two minutes
demo: $(MNP)
	@BUILD=$(BUILD) scripts/demo.sh

test: tests-built
	@echo "the Python package has its own tests: make test-python"
	@BUILD=$(BUILD) CC='$(CC)' scripts/run_tests.sh $(TEST_PROGRAMS)
test-long: tests-built
	@BUILD=$(BUILD) CC='$(CC)' MNP_TEST_LONG=1 scripts/run_tests.sh $(TEST_PROGRAMS) \
	    $(wildcard tests/long/*.sh)

# The Python package: wheels in dist/, made of the libraries above, and tests from the wheel.
wheel: $(SHLIB)
	@BUILD=$(BUILD) scripts/python_wheel.sh
wheel-cuda: $(if $(HAVE_NVCC),$(BUILD)/libmnp_cuda.so)
	@BUILD=$(BUILD) scripts/python_wheel.sh cuda
test-python: wheel $(MNP)
	@BUILD=$(BUILD) T='$(T)' scripts/python_test.sh

# The page as a folder for any web server, and its tests: the module against the native build, and Chromium.
wasm: $(if $(HAVE_WASM),$(WASM)) $(MNP) $(BUILD)/tests/web/native
	$(if $(HAVE_WASM),,$(error there is no clang that compiles for WebAssembly: scripts/setup.sh web installs it))
	@BUILD=$(BUILD) scripts/web_page.sh
test-web: wasm
	@BUILD=$(BUILD) T='$(T)' scripts/web_test.sh

bench: all
	$(BUILD)/mnp bench $(ARGS)

asan:
	@$(MAKE) SAN=address,undefined test
tsan:
	@$(MAKE) SAN=thread test
emulator: $(EMULATOR)
	$(if $(EMULATOR),$(BUILD)/emulator/test_cuda --small $(T),@BUILD=$(BUILD) tests/contract/test_emulator.sh)
coverage:
	@$(MAKE) COVERAGE=1 test
	@scripts/coverage.sh $(BUILD)-coverage
fuzz:
	@FUZZ_SECONDS=$(FUZZ_SECONDS) T=$(T) MAKE='$(MAKE)' scripts/fuzz.sh

lint: all
	@BUILD=$(BUILD) scripts/lint.sh
format:
	@scripts/c_files.sh | xargs -r clang-format -i

install: all
	@BUILD=$(BUILD) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) VERSION=$(VERSION) LIBS='$(LIBS)' \
	    scripts/install.sh
uninstall:
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) VERSION=$(VERSION) scripts/install.sh --remove

info: $(BUILD)/config.mk
	@CC='$(CC)' PORTABLE=$(PORTABLE) scripts/info.sh $(BUILD)/config.mk '$(VERSION)' '$(BUILD)' '$(ISAS)' '$(CUDA)' '$(CUDA_ALL)'
clean:
	rm -rf build build-*
help:
	@cat scripts/help.txt
