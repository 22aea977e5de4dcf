# check.sh: the shell's side of tests/check.h. A test sources it, calls
#
#     run NAME COMMAND...     a test that passes when the command succeeds
#     skip NAME "why"         a test that cannot run here
#     fails STATUS "text" COMMAND...
#                             succeeds when the command ends with that exit status, one line on
#                             stderr that contains the text, and nothing on stdout
#     children_of PID         the processes it started, in their order (pgrep is not everywhere)
#     at_work PID SECONDS     waits until it has computed for so long: by the time of a core, so that
#                             a loaded machine changes nothing; fails when it ended before
#
# and ends with check_done, which prints "N passed, N failed[, N skipped]".
# shellcheck shell=bash
check_passed=0 check_failed=0 check_skipped=0

run() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok   $name"
        check_passed=$((check_passed + 1))
    else
        printf 'FAIL %s\n%s\n' "$name" "$output"
        check_failed=$((check_failed + 1))
    fi
}
skip() {
    echo "skip $1: $2"
    check_skipped=$((check_skipped + 1))
}
fails() {
    local status=$1 text=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    cat out.txt err.txt
    [ $got = "$status" ] && [ ! -s out.txt ] && [ "$(wc -l <err.txt)" = 1 ] &&
        grep -qF -- "$text" err.txt
}
children_of() {
    sed -n "s/^\([0-9]*\) (.*) [A-Za-z] $1 .*/\1/p" /proc/[0-9]*/stat 2>/dev/null | sort -n
}
at_work() { # a signal that comes sooner may find no handler yet
    local ticks state used
    ticks=$(awk -v s="$2" -v t="$(getconf CLK_TCK || echo 100)" 'BEGIN { print int(s * t) }')
    while read -r state used < <(awk '{ sub(/.*\) /, ""); print $1, $12 + $13 }' "/proc/$1/stat" 2>/dev/null); do
        [ "$state" != Z ] || return 1
        [ "$used" -lt "$ticks" ] || return 0
        sleep 0.02
    done
    return 1
}
check_done() {
    local tail=
    [ "$check_skipped" = 0 ] || tail=", $check_skipped skipped"
    echo "$check_passed passed, $check_failed failed$tail"
    [ "$check_failed" = 0 ]
}
