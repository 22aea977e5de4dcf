#!/usr/bin/env bash
# test_races.sh: the CUDA kernels have no race between the threads of a block (tests/emulator/races.h):
# steps of the paper's model in every precision and all ops under the thread sanitizer, and those that
# have wide instructions once more with them. First the sanitizer shows that it finds races that were
# put there, and no others; at last, that it finds those of wide kernels whose threads do not meet.
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

# wide kernels: what the sanitizer watches was built for the runs before
kernels=${BUILD:-build}-tsan/emulator
plant_wide() { # source file meeting: the kernels with a file of wide/ that has no such line any more
    local wide=src/backend/cuda/wide to="$dir/planted/backend/cuda/wide" others
    rm -rf "$dir/planted" && mkdir -p "$to"
    grep -vF -- "$3" "$wide/$2" >"$to/$2"
    if cmp -s "$wide/$2" "$to/$2"; then return 1; fi
    [ -f "$to/$1" ] || cp "$wide/$1" "$to/$1"
    mapfile -t others < <(find "$kernels" -name '*.o' ! -path "$kernels/$wide/$1.o")
    "$cxx" -I"$dir/planted" "${flags[@]}" -I. -fPIC -fvisibility=hidden -fsanitize=thread -w -x c++ \
        -c "$to/$1" -o "$dir/planted/it.o" &&
        "$cxx" -shared -fsanitize=thread "$dir/planted/it.o" "${others[@]}" -o "$dir/planted/libmnp_cuda.so" &&
        cp "$kernels/test_cuda" "$dir/planted/"
}
reported_wide() { # op
    ! "$dir/planted/test_cuda" --wide --small "$1" >"$dir/planted/log" 2>&1 &&
        grep -q 'ThreadSanitizer: data race' "$dir/planted/log"
}

run "the planted kernels compile" plant
for kernel in exchange warp named copied sent; do
    run "$kernel: the race is reported" reported $kernel
    run "$kernel: nothing is reported where there is none" "$dir/races" $kernel-right
done
run "paper's model, fp32: no race" watched paper
run "tf32 and bf16: no race" watched precision
run "ops: no race" watched ops
run "wide instructions, ops and tf32: no race" "$kernels/test_cuda" --wide --small linear attention precision
run "wide instructions, general set: no race" env MNP_EMULATED_GPU=8.6 "$kernels/test_cuda" --wide --small linear attention
while read -r what source file meeting; do
    run "wide $what, $file without '$meeting': compiles" plant_wide "$source" "$file" "$meeting"
    run "wide $what, $file without '$meeting': the race is reported" reported_wide "$what"
done <<'END'
linear linear.cu linear_groups.cuh __syncthreads
linear linear.cu linear_warps.cuh __syncthreads
linear weights.cu weights.cu the ring and the lengths are free
attention attention.cu attention16_forward.cuh if (from > 0) team_sync
attention attention.cu attention16_grad.cuh if (from > 0) team_sync
END
check_done
