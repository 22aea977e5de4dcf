#!/usr/bin/env bash
# web_test.sh: the tests of the WebAssembly module and of the page in $BUILD/web (make test-web builds them):
# every tests/web/test_*.mjs, those of the module in node, those named test_page_* with Chromium as well.
# Reads BUILD and T (only tests with T in their name). A test file ends with "N passed, N failed[, N skipped]",
# or is one of node:test. Its output and the sum, the last line here, are kept in $BUILD/web/test-logs.
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=$(cd "${BUILD:-build}" && pwd)
export T=${T:-} PAGE=$BUILD/web NATIVE=$BUILD/tests/web/native MODELS=$BUILD/web-models
logs=$PAGE/test-logs
rm -rf "$logs" && mkdir -p "$logs" "$MODELS"
# Without Chromium the tests that need it say so and are counted as skipped; in CI (CI=true) that is an error.
for tool in node chromium; do
    command -v $tool >/dev/null && continue
    echo "skip $tool is not installed: scripts/setup.sh web installs it"
    [ "${CI:-}" != true ] || exit 1
    [ $tool = chromium ] || { echo "0 passed, 0 failed, 1 skipped" | tee "$logs/summary" && exit 0; }
done

# Models of the processes that are not shipped. What they have learnt does not matter.
train() { # NAME ARGUMENTS...
    [ "$MODELS/$1.safetensors" -nt "$BUILD/mnp" ] && return
    "$BUILD/mnp" train "${@:2}" --threads 1 --quiet --out "$MODELS/$1" || exit 1
    rm -f "$MODELS/$1".*.safetensors "$MODELS/$1".log.csv
}
train gp --model gp --data rbf:points=16 --functions 8 --steps 1
train cbp --model cbp --data rbf:points=16 --functions 8 --steps 1
train mnp-tiny --data rbf:points=16 --functions 8 --steps 1 --preset tiny
train lmm --model lmm --data examples/data/plants.csv
cp models/np-rbf.safetensors "$MODELS/"

# A log's count: ours on its last line, or that of node:test.
count() {
    tail -n 1 "$1" | grep -E '^[0-9]+ passed, [0-9]+ failed' && return
    awk '$1 == "#" {n[$2] = $3} END {if (!("pass" in n)) n["fail"] = 1
        printf "%d passed, %d failed, %d skipped\n", n["pass"], n["fail"] + n["cancelled"], n["skipped"]}' "$1"
}
for test in tests/web/test_*.mjs; do
    log=$logs/$(basename "$test" .mjs).log
    timeout 400 node "$test" >"$log" 2>&1
    printf '%-32s %s\n' "$(basename "$test")" "$(count "$log")"
    if [[ $(count "$log") != *" 0 failed"* ]]; then
        { echo "FAIL $test (the log is $log)" && grep -A 12 -E '^(FAIL|not ok)' "$log"; } | tee "${log%.log}.report"
    fi
done
for log in "$logs"/*.log; do count "$log"; done | awk '{p += $1; f += $3; s += $5}
    END {printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""; exit f > 0}' | tee "$logs/summary"
exit "${PIPESTATUS[1]}"
