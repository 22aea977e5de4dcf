#!/usr/bin/env bash
# test_races.sh: the CUDA kernels have no race between the threads of a block (tests/emulator/races.h):
# steps of the paper's model in every precision and all ops under the thread sanitizer. First the
# sanitizer shows that it finds races that were put there, and no others.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
cxx=${CXX:-g++}
dir=${TEST_TMP:-$(mktemp -d)}
flags=(-std=c++17 -O1 -g -Itests/emulator -Iinclude -Isrc -include cuda_runtime.h -DEMULATED_RACES)

if [ "$(uname -m)" != x86_64 ] || ! echo 'int main() {}' | "$cxx" -fsanitize=thread -x c++ - -o "$dir/probe" 2>/dev/null; then
    skip "races" "a C++ compiler with the thread sanitizer, on x86-64, is needed"
    check_done
    exit
fi

plant() { # the emulator is not watched itself
    "$cxx" "${flags[@]}" -c tests/emulator/emulator.cpp -o "$dir/emulator.o" &&
        "$cxx" "${flags[@]}" -c tests/emulator/warp.cpp -o "$dir/warp.o" &&
        "$cxx" "${flags[@]}" -fsanitize=thread tests/emulator/planted/races.cpp "$dir/emulator.o" "$dir/warp.o" \
            -o "$dir/races"
}
reported() { ! "$dir/races" "$1" && "$dir/races" "$1" 2>&1 | grep -q 'ThreadSanitizer: data race'; }
watched() { # names: those tests of test_cuda
    "${MAKE:-make}" SAN=thread emulator T="$*"
}

run "the planted kernels compile" plant
for kernel in exchange warp named copied sent; do
    run "$kernel: the race is reported" reported $kernel
    run "$kernel: nothing is reported where there is none" "$dir/races" $kernel-right
done
run "paper's model, fp32: no race" watched paper
run "tf32 and bf16: no race" watched precision
run "ops: no race" watched ops
check_done
