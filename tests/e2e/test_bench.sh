#!/usr/bin/env bash
# test_bench.sh: mnp bench says what it measured, and why it cannot; no test depends on a speed.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

scores_functions() {
    "$MNP" bench eval --functions 3 --threads 1 --json >e.json 2>e.txt &&
        grep -q '"device":"cpu".*"eval_functions":3,"eval_seconds":[0-9]' e.json &&
        grep -q '3 functions of 128 points, 20 samples, cpu' e.txt
}
run "scoring a few functions is timed" scores_functions
# 100 particles, 81 gradients of m (1.25 + .011 m) + 3.2 MFLOP each, m = 10: the model's products by hand
counts_work() {
    "$MNP" bench condition --seconds 0.01 --threads 1 --json >c.json 2>c.txt &&
        sed 's/.*"condition_gflop":\([0-9.]*\),"condition_ms":[0-9.e+]*,"condition_gflops":[0-9].*/\1/' c.json |
        awk '{ off = $1 / (.081 * 100 * 16.8) - 1; exit !(off * off < .05 ^ 2) }'
}
run "conditioning is timed, and its work is counted" counts_work
# The step's 62.2 GFLOP at 50 points in every context and 57.3 as drawn were counted by hand (docs/dev/math.md, 14).
counts_shapes() {
    "$MNP" bench shapes --shapes paper,random --random 2 --rounds 0 --json >s.json 2>s.txt &&
        grep -q '"shape":"random-1"' s.json &&
        sed 's/.*"gflop":\([0-9.]*\),"gflop_full":\([0-9.]*\),.*"shape":"random-0".*/\1 \2/' s.json |
        awk '{ exit !(($1 / 57.3 - 1) ^ 2 < .003 ^ 2 && ($2 / 62.2 - 1) ^ 2 < .003 ^ 2) }'
}
run "the shapes are listed with the work of a step" counts_shapes
times_shapes() {
    "$MNP" bench shapes --shapes cnp --rounds 2 --seconds 0.01 --threads 1 --peak 1:1 --json >t.json 2>t.txt &&
        grep -q '"shape":"cnp","math":"fp32".*"error":null.*"ms":[0-9.]*,.*"ms_full":[0-9.]*,"rounds":[12],"mb":[1-9]' t.json &&
        sed 's/.*"gflop_full":\([0-9.]*\),"floor_ms":\([0-9.]*\),.*/\1 \2/' t.json | awk '{ exit !(($1 / $2 - 1) ^ 2 < 1e-12) }'
}
run "a shape is timed, its floor taken from the peak that was given" times_shapes
run "an unknown shape is refused, with those there are" \
    fails 1 "there is no shape 'widest'" "$MNP" bench shapes --shapes widest
run "a peak is two numbers" fails 2 "is not TFLOP/s:GB/s" "$MNP" bench shapes --peak 494
run "a part without a GPU's side is refused with --device cuda" \
    fails 2 "'gemm' is measured on the processor only" "$MNP" bench gemm --device cuda
run "an unknown precision is refused" \
    fails 2 "fp32|tf32|bf16|all" "$MNP" bench step --device cuda --math fp16
run "no run at all is refused" fails 2 "--runs" "$MNP" bench step --device cuda --runs 0
if nvidia-smi -L >/dev/null 2>&1; then
    skip "without a GPU one line says why" "there is a GPU here"
else
    run "without a GPU one line says why" \
        fails 1 "CUDA cannot be used" "$MNP" bench step eval --device cuda --runs 5
    run "the same for scoring" fails 1 "CUDA cannot be used" "$MNP" bench eval --device cuda
fi
check_done
