#!/usr/bin/env bash
# test_table2.sh: micro versions of mnp repro table2: tables, pictures, kept cells, merging, errors.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

micro="--quick --steps 20 --trials 2 --deltas 0.5,0.8 --models none"
few="--agents uniform,oracle,maml"

timeless() { grep -vE '"(seconds|out|model)":' "$1"; }
same_tables() {
    cmp "$1/table2.md" "$2/table2.md" && cmp "$1/table2-regret-500.svg" "$2/table2-regret-500.svg" &&
        cmp "$1/table2-wheel-2000.svg" "$2/table2-wheel-2000.svg" &&
        [ "$(timeless "$1/table2.json")" = "$(timeless "$2/table2.json")" ]
}

whole() {
    "$MNP" repro table2 $micro $few --out whole --json >whole.json 2>whole.err || { cat whole.err && return 1; }
    [ "$(wc -l <whole.json)" = 1 ] && [ "$(ls whole/cells/*.json | wc -l)" = 12 ] &&
        [ -s whole/table2-regret-2000.svg ] && [ -s whole/table2-wheel-500.svg ] &&
        grep -q 'Quick settings' whole/table2.md && grep -q '^| uniform | 100.00 ± ' whole/table2.md &&
        grep -q '^| oracle | 0.00 ± ' whole/table2.md && grep -q '^| \*MNP (quoted)\* | 1.08 ± 0.00 | — |' whole/table2.md
}
keys() {
    local key
    for key in cells quoted agent delta steps trials state cumulative cumulative_sd cumulative_se simple simple_sd \
        simple_se uniform_cumulative seconds model version quick seed; do
        grep -q "\"$key\":" whole/table2.json || { echo "no $key" && return 1; }
    done
}
# a cell is what mnp bandit plays with the same file
cell_is_bandit() {
    "$MNP" bandit whole/wheel-maml.safetensors --delta 0.8 --trials 2 --steps 500 --json --quiet >b.json &&
        grep -qF "\"cumulative\":$(sed -E 's/.*"cumulative":([^,]*).*/\1/' b.json)," whole/cells/maml-0.8-500-*.json
}
kept() {
    local cell
    cell=$(ls whole/cells/maml-0.5-500-*.json)
    cp -r whole before && rm "$cell"
    "$MNP" repro table2 $micro $few --out whole >again.txt 2>&1 && grep -q '11 of them are finished' again.txt &&
        same_tables before whole
}
# cells of two folders make the table of one
merged() {
    "$MNP" repro table2 $micro --agents uniform --out a --quiet && "$MNP" repro table2 $micro --agents oracle,maml --out b --quiet &&
        mkdir -p all/cells && cp a/cells/* b/cells/* all/cells && cp b/wheel-maml.safetensors all &&
        "$MNP" repro table2 $micro $few --out all >merge.txt 2>&1 && grep -q '12 of them are finished' merge.txt &&
        same_tables all whole
}
any_threads() {
    "$MNP" repro table2 $micro $few --out one --threads 1 --quiet && same_tables one whole
}
missing_models_are_told() {
    "$MNP" repro table2 --agents uniform,np --models none --trials 1 --deltas 0.5 --horizon short --out miss --quiet &&
        grep -q 'No row np: there is no none/wheel-np-t1.safetensors' miss/table2.md &&
        grep -q '^## 2000 steps, 1 trials' miss/table2.md && ! grep -q '80000' miss/table2.md
}
models_are_trained() {
    "$MNP" repro table2 $micro --agents "mnp T=5,np" --horizon short --out models --quiet 2>/dev/null &&
        [ -s models/wheel-mnp-t5.safetensors ] && [ -s models/wheel-np-t1.safetensors ] &&
        ! compgen -G "models/training*" >/dev/null && grep -q '^| mnp T=5 | ' models/table2.md
}
interrupted() {
    local status
    "$MNP" repro table2 --agents uniform,maml --steps 20 --models none --deltas 0.5 --trials 60 --out rude --quiet 2>rude.err &
    local pid=$!
    at_work $pid 1 && kill -INT $pid
    wait $pid
    status=$?
    cat rude.err
    [ $status = 130 ] && [ "$(wc -l <rude.err)" = 1 ] && grep -q interrupted rude.err
}

run "tables, JSON, pictures" whole
run "JSON keys" keys
run "a cell is what mnp bandit plays" cell_is_bandit
run "finished cells are kept" kept
run "cells of several folders merge" merged
run "the same for any number of threads" any_threads
run "missing models are told" missing_models_are_told
run "quick trains what is not there" models_are_trained
run "Ctrl-C" interrupted
run "unknown agent" fails 2 "did you mean maml?" "$MNP" repro table2 --agents mml --out bad
run "a flag of another study" fails 2 "--seeds is not for table2" "$MNP" repro table2 --seeds 3 --out bad
run "bad radius" fails 2 "below 1" "$MNP" repro table2 --deltas 0.5,1.2 --out bad
run "bad horizon" fails 2 "short|long|both" "$MNP" repro table2 --horizon shor --out bad
run "a refused command leaves nothing" test ! -e bad
check_done
