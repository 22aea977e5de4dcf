#!/usr/bin/env bash
# test_kernels.sh: --kernels general and fused, and draws of p(z | C), through the command, with the emulator in
# place of a GPU.
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
train() { # NAME KERNELS [COMPUTE CAPABILITY [MATH]]
    (cd "$tmp" && MNP_EMULATED_GPU=${3:-9.0} ./mnp train --data rbf --functions 4 --preset "${PRESET:-paper}" --steps 1 \
        --batch 2 --seed 3 --device cuda --math "${4:-tf32}" --kernels "$2" --set valid_functions=1 --set valid_samples=1 --out "$1.safetensors" --quiet)
}
# the loss that eval finds with a model's weights, on the CPU
score() {
    (cd "$tmp" && ./mnp eval "$1.safetensors" --functions 2 --samples 2 --json --quiet) |
        awk 'match($0, /"loglik":[-+0-9.e]*/) { print substr($0, RSTART + 9, RLENGTH - 9) }'
}
near() { # A B BOUND: two numbers
    awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < most ^ 2) }'
}
logged() { # NAME COLUMN: of the first step
    awk -F, -v name="$2" 'NR == 1 { for (k = 1; k <= NF; k++) if ($k == name) at = k } NR == 2 { print $at }' "$tmp/$1.log.csv"
}
# loss and gradient of the step, and the score after it, which moves by rounding: it has the sign of every gradient
agree() {
    train fused32 fused 9.0 fp32 && train general32 general 9.0 fp32 && near "$(score fused32)" "$(score general32)" 1e-5 &&
        train fused fused && train general general && ! cmp -s "$tmp/fused.safetensors" "$tmp/general.safetensors" &&
        near "$(logged fused loss)" "$(logged general loss)" 2e-4 && near "$(logged fused grad_norm)" "$(logged general grad_norm)" 2e-2 &&
        near "$(score fused)" "$(score general)" 1e-3
}

# a GPU that is not of compute capability 9.0 has the general kernels, whatever is asked for
chosen() {
    local math gpu
    for math in fp32 bf16; do
        PRESET=tiny train g general 9.0 $math || return 1
        for gpu in 8.0 8.6 8.9 9.1 10.0 12.1; do
            PRESET=tiny train o fused $gpu $math && cmp "$tmp/g.safetensors" "$tmp/o.safetensors" || return 1
        done
    done
    train o fused 8.6 && cmp "$tmp/general.safetensors" "$tmp/o.safetensors"
}
too_old() { # a GPU before compute capability 8.0
    (cd "$tmp" && export MNP_EMULATED_GPU=7.5 && fails 1 "$1" ./mnp train --data rbf --functions 4 --steps 1 --device cuda --out x)
}
old_is_left() { # --device auto says why, and goes to the CPU
    (cd "$tmp" && MNP_EMULATED_GPU=7.5 ./mnp train --data rbf --functions 4 --preset tiny --steps 1 --device auto --out x \
        --set valid_functions=1 --set valid_samples=1 2>err) && grep -q "has compute capability 7.5" "$tmp/err"
}

# draws of p(z | C): twice on the device the same bytes, and close to those of the CPU
draws() { # DEVICE NAME
    (cd "$tmp" && ./mnp predict small.safetensors --context c.csv --grid -1:1:3 --condition refine --gradients 10 \
        --samples 2 --seed 3 --device "$1" --out "$2.csv" --quiet)
}
particles() {
    printf 'x,y\n-1,0.5\n0.2,-0.3\n0.9,0.1\n' >"$tmp/c.csv"
    (cd "$tmp" && ./mnp train --data rbf --functions 4 --preset tiny --steps 2 --batch 2 --seed 1 --set valid_functions=1 \
        --set valid_samples=1 --out small.safetensors --quiet) || return 1
    draws cuda one && draws cuda two && draws cpu here && cmp -s "$tmp/one.csv" "$tmp/two.csv" &&
        paste -d, "$tmp/one.csv" "$tmp/here.csv" | awk -F, 'NR > 1 { for (k = 2; k <= 3; k++) {
            d = $k - $(k + NF / 2); if (d * d > 1e-6) exit bad = 1; n++ } } END { exit bad || n != 6 }'
}

# data without noise need their digits: tf32 loses nats, which eval notices, and mixed has those of the CPU
digits() { # MATH: a number of eval
    (cd "$tmp" && ./mnp eval convex.safetensors --functions 2 --samples 2 --draws 0 --device cuda --math "$1" --json --quiet) |
        awk -v key="\"$2\":" 'match($0, key "[-+0-9.e]*") { print substr($0, RSTART + length(key), RLENGTH - length(key)) }'
}
precise() {
    cp models/mnp-convex.safetensors "$tmp/convex.safetensors"
    awk -v cpu="$(score convex)" -v mixed="$(digits mixed loglik)" -v left="$(digits mixed rounding)" -v lost="$(digits tf32 rounding)" \
        'BEGIN { exit !(cpu > 7 && (mixed - cpu) ^ 2 < 1e-4 && left ^ 2 < 1e-4 && lost > 2) }'
}

# general has the same work as fused, and both are timed by the device's clock
shapes() {
    (cd "$tmp" && ./mnp bench shapes --device cuda --math tf32 --shapes cnp,paper,general --batch 1 --rounds 1 --seconds 0.01 --json) \
        >"$tmp/shapes.json" 2>"$tmp/shapes.txt" && [ "$(grep -o '"ms_full":[0-9.]*[1-9]' "$tmp/shapes.json" | wc -l)" = 3 ] &&
        grep -q '"shape":"general","math":"tf32".*"kernels":"general"' "$tmp/shapes.json" &&
        [ "$(grep -o '"gflop":[0-9.]*' "$tmp/shapes.json" | sort -u | wc -l)" = 2 ] &&
        (cd "$tmp" && ./mnp bench shapes --device cuda --kernels general --math tf32 --shapes cnp --rounds 0 --json 2>said) |
        grep -q '"shape":"cnp",.*"kernels":"general"' && grep -q '^cnp .* --kernels general$' "$tmp/said"
}
run "the CPU has kernels of its own" fails 1 "leave ':general' out" \
    "$MNP" train --data rbf --functions 4 --steps 1 --kernels general --out "$tmp/x"
run "bench: for a GPU" fails 2 "for --device cuda" "$MNP" bench step --kernels general
run "an unknown kind" fails 1 "fused" \
    "$MNP" train --data rbf --functions 4 --steps 1 --device auto --kernels fussed --out "$tmp/x"
if [ -e "$BUILD/emulator/libmnp_cuda.so" ]; then
    cp "$MNP" "$BUILD/emulator/libmnp_cuda.so" "$tmp"
    run "general and fused train to the same scores" agree
    run "the kernels follow the GPU" chosen
    run "a GPU that is too old" too_old \
        "emulated GPU has compute capability 7.5, and 8.0 or later is needed"
    run "auto leaves it" old_is_left
    run "steps of several shapes are timed" shapes
    run "mixed has the digits that tf32 loses" precise
    run "particles: the same bytes again, and the CPU's numbers" particles
else
    skip "general and fused train to the same scores" "the emulator is not built"
    skip "steps of several shapes are timed" "the emulator is not built"
    skip "particles: the same bytes again, and the CPU's numbers" "the emulator is not built"
fi
check_done
