#!/usr/bin/env bash
# run_tests.sh PROGRAM...: run test programs, at most two at a time, and sum what they counted.
#
# A program (or a .sh file, run with bash) must end with "N passed, N failed[, N skipped]" and exit 0
# only if nothing failed; a fuzz target without such a line counts as one test. A program that
# crashed, ran past its time or printed no count is one failure more. Output goes to
# $BUILD/test-logs; the last line printed here is the sum, also kept in test-logs/summary.
#
# Tests run in the top folder and may read: MNP (the command), BUILD (the build folder, absolute),
# MNP_TEST_LONG (1: run the long cases too) and TEST_TMP (an empty folder of their own).
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
mkdir -p "$BUILD"
BUILD=$(cd "$BUILD" && pwd)
export BUILD MNP="$BUILD/mnp"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
limit=${MNP_TEST_TIMEOUT:-$([ -n "${MNP_TEST_LONG:-}" ] && echo 7200 || echo 600)}

log_of() { # where the output of a program goes: unit-test_json
    local name=${1#"$BUILD"/}
    name=${name#"$(basename "$BUILD")"/}
    name=${name#tests/}
    name=${name%.sh}
    echo "$BUILD/test-logs/${name//\//-}"
}

if [ "${1:-}" = --one ]; then # the part that runs in parallel
    program=$2
    log=$(log_of "$program")
    case $program in
    *.sh) command=(bash "$program") ;;
    */fuzz_*)
        seeds=tests/fuzz/corpus/${program##*/fuzz_}
        command=("$program")
        [ -d "$seeds" ] && command+=("$seeds")
        ;;
    *) command=("$program") ;;
    esac
    export TEST_TMP="$log.tmp"
    rm -rf "$TEST_TMP" && mkdir -p "$TEST_TMP"
    start=$(date +%s.%N)
    timeout "$limit" "${command[@]}" >"$log.log" 2>&1 </dev/null
    status=$?
    rm -rf "$TEST_TMP"
    count=$(tail -n 1 "$log.log" | grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$')
    read -r passed failed skipped _ <<<"$(echo "$count" | tr -cs '0-9' ' ') 0"
    note=
    if [ -z "$count" ]; then
        passed=0 failed=0 skipped=0
        if [[ $program == */fuzz_* && $status = 0 ]]; then passed=1; else failed=1; fi
        [ $status = 0 ] && [ $failed = 1 ] && note=" (printed no count)"
    fi
    if [ $status != 0 ] && { [ "$failed" = 0 ] || [ -z "$count" ]; }; then
        failed=1
        note=" (exit status $status$([ $status = 124 ] && echo ", ran over ${limit} s"))"
    fi
    echo "$passed $failed $skipped" >"$log.count"
    {
        printf '%-4s %-36s %4d passed, %d failed, %d skipped %7.1f s%s\n' \
            "$([ "$failed" = 0 ] && echo ok || echo FAIL)" "$(basename "$log")" "$passed" "$failed" \
            "$skipped" "$(echo "$(date +%s.%N) $start" | awk '{print $1 - $2}')" "$note"
        [ "$failed" = 0 ] || grep -v '^ok ' "$log.log" | tail -n 200 | sed 's/^/     | /' # what passed would hide the rest
    } >"$log.report"
    cat "$log.report" # in one piece, so that two programs do not mix their lines
    exit 0
fi

logs="$BUILD/test-logs"
rm -rf "$logs" && mkdir -p "$logs"
jobs=$(nproc 2>/dev/null || echo 1)
[ "$jobs" -gt 2 ] && jobs=2
start=$SECONDS
[ $# -gt 0 ] || { echo "no test program matches" && exit 1; }
printf '%s\0' "$@" | xargs -0 -n 1 -P "$jobs" "$0" --one

total=$(cat "$logs"/*.count 2>/dev/null | awk '{p += $1; f += $2; s += $3}
    END {printf "%d passed, %d failed%s", p, f, s ? ", " s " skipped" : ""}')
ran=$(find "$logs" -name '*.count' | wc -l)
if [ "$ran" != $# ]; then echo "only $ran of $# test programs ran"; fi
if grep -qs '^skip ' "$logs"/*.log; then
    echo "skipped:"
    grep -h '^skip ' "$logs"/*.log | sed 's/^skip /  /'
fi
echo "$ran test programs in $((SECONDS - start)) s, output in $logs"
echo "$total" | tee "$logs/summary"
[ "$ran" = $# ] && [[ $total == *" passed, 0 failed"* ]]
