#!/usr/bin/env bash
# test_kill.sh: kill -9 at random moments, then --resume: after every kill the files load, the log has
# every row of the state's steps, and the end is that of a run which was never disturbed. 20 kills;
# 200 with MNP_TEST_LONG=1.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

# A step takes a millisecond or two and is saved at once, so that most of the time is writing.
options="--data monotonic --functions 40 --preset tiny --batch 4 --seed 3 --steps 450 --set valid_functions=2 --set T=2"
train() { "$MNP" train "$@" --quiet --threads 1; }
kills=20
[ -n "${MNP_TEST_LONG:-}" ] && kills=200
RANDOM=11

state_step() { # the first number of the state: after its header
    local header
    header=$(od -An -t u8 -N 8 "$1") && od -An -t f8 -j $((8 + header)) -N 8 "$1" | tr -d ' '
}
# rows 1, 2, ... without a gap, as many as the state has steps or more
whole_log() {
    awk -F, -v steps="$(state_step m.train.safetensors)" '
        NR == 1 {bad = $0 != "step,loss,kl,grad_norm,valid,rate,seconds,rounding,sampling,shift"; next}
        NF != 10 || $1 != NR - 1 {bad = 1}
        END {if (bad || NR - 1 < steps) {print "rows to " NR - 1 ", state at " steps; exit 1}}' m.log.csv
}
loadable() {
    local f left
    for f in m.safetensors m.last.safetensors; do [ ! -e $f ] || "$MNP" info $f --quiet >info.txt || return 1; done
    [ ! -e m.train.safetensors ] || whole_log || return 1
    left=$(find . -name '*tmp-*' | wc -l) # of the one that was killed; those of earlier ones are gone
    [ "$left" -le 1 ] || { ls && return 1; }
}
same_end() { # bits and rows of the calm run; nothing else is left
    local f
    for f in safetensors last.safetensors train.safetensors; do cmp calm.$f m.$f || return 1; done
    cut -d, -f1-6 calm.log.csv >calm.rows && cut -d, -f1-6 m.log.csv | cmp calm.rows - || return 1
    [ -z "$(find . -name '*tmp-*' -o -name '*lock*')" ] || { ls && return 1; }
}
begin() { # seconds between saves: a run in the background: a new one, or the one that is there
    if [ -e m.train.safetensors ]; then
        "$MNP" train --resume m --checkpoint $1 --quiet --threads 1 2>run.err &
    else
        "$MNP" train $options --out m --checkpoint $1 --quiet --threads 1 2>run.err &
    fi
}
seen() { stat -c %i%Y%s "$1" 2>/dev/null; }
# Every third time at any moment from the start on; else a moment after a file was replaced.
moment() {
    local pid=$1 file before k
    if [ $((RANDOM % 3)) = 0 ]; then
        sleep "0.$(printf %03d $((RANDOM % 250)))"
        return
    fi
    file=$(printf 'm.%s\n' train.safetensors last.safetensors log.csv | sed -n $((1 + RANDOM % 3))p)
    before=$(seen "$file")
    for k in $(seq 500); do
        [ "$(seen "$file")" = "$before" ] && kill -0 "$pid" 2>/dev/null || break
    done
    sleep "0.0$(printf %02d $((RANDOM % 30)))"
}
killed_and_resumed() {
    local k=0 pid status
    train $options --out calm || return 1
    while [ $k -lt $kills ]; do
        begin 0
        pid=$!
        moment $pid
        kill -9 $pid 2>/dev/null && k=$((k + 1))
        wait $pid 2>/dev/null
        status=$?
        echo "$k: exit $status, $([ ! -e m.train.safetensors ] || state_step m.train.safetensors)"
        case $status in
        137) loadable || return 1 ;;
        0) same_end && rm -f m.* || return 1 ;; # it was over before: once more
        *) cat run.err && return 1 ;;
        esac
    done
    begin 60
    wait $! && same_end
}
run "kill -9 at $kills random moments: loadable, no row missing, the same bits" killed_and_resumed

# a new run over the files of an earlier one: its log never meets the earlier state
replaced() {
    rm -f m.*
    train $options --stop-at 30 --out m && train ${options/seed 3/seed 4} --stop-at 2 --checkpoint 0 --out m || return 1
    whole_log && [ "$(wc -l <m.log.csv)" = 3 ] && [ "$(state_step m.train.safetensors)" -eq 2 ]
}
run "a new run takes the place of an earlier one" replaced

# rows that are not there are told, once
missing_rows() {
    rm -f m.*
    train $options --stop-at 12 --out m && sed -i '6,$d' m.log.csv || return 1
    "$MNP" train --resume m --stop-at 14 >said.txt && grep -q 'm.log.csv lacks the rows of steps 5 to 12' said.txt &&
        "$MNP" train --resume m --stop-at 15 >said.txt && ! grep -q lacks said.txt
}
run "a log that was cut is noticed" missing_rows
check_done
