#!/usr/bin/env bash
# test_kernels.sh: --kernels general and fused through the command, with the emulator in place of a GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
BUILD=${BUILD:-$PWD/build}
MNP=$BUILD/mnp
tmp=${TEST_TMP:-$(mktemp -d)}

fails() { # STATUS TEXT COMMAND...
    local status=$1 text=$2
    shift 2
    "$@" 2>"$tmp/err"
    [ $? = "$status" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$text" "$tmp/err"
}
train() { # NAME KERNELS
    (cd "$tmp" && ./mnp train --data rbf --functions 4 --preset paper --steps 1 --batch 2 --seed 1 --device cuda \
        --math tf32 --kernels "$2" --set valid_functions=1 --set valid_samples=1 --out "$1.safetensors" --quiet)
}
# the loss that eval finds with a model's weights, on the CPU
score() {
    (cd "$tmp" && ./mnp eval "$1.safetensors" --functions 2 --samples 2 --json --quiet) |
        awk 'match($0, /"loglik":[-+0-9.e]*/) { print substr($0, RSTART + 9, RLENGTH - 9) }'
}
agree() {
    train fused fused && train general general && ! cmp -s "$tmp/fused.safetensors" "$tmp/general.safetensors" &&
        awk -v a="$(score fused)" -v b="$(score general)" 'BEGIN { exit !(a != "" && (a - b) ^ 2 < 1e-6) }'
}

run "the CPU has kernels of its own" fails 1 "leave ':general' out" \
    "$MNP" train --data rbf --functions 4 --steps 1 --kernels general --out "$tmp/x"
run "bench: for a GPU" fails 2 "for --device cuda" "$MNP" bench step --kernels general
run "an unknown kind" fails 1 "fused" \
    "$MNP" train --data rbf --functions 4 --steps 1 --device auto --kernels fussed --out "$tmp/x"
if [ -e "$BUILD/emulator/libmnp_cuda.so" ]; then
    cp "$MNP" "$BUILD/emulator/libmnp_cuda.so" "$tmp"
    run "general and fused train to the same scores" agree
else
    skip "general and fused train to the same scores" "the emulator is not built"
fi
check_done
