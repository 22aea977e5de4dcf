#!/usr/bin/env bash
# test_train.sh: training from the command line: files, resume, interruption, full disk, bad input.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

# An instrumented build is ten times slower: shorter runs show the same.
case ${BUILD:-} in *san | *san/*) steps=20 stop=9 ;; *) steps=40 stop=17 ;; esac
tiny="--data monotonic --functions 60 --preset tiny --batch 8 --seed 3 --quiet --set valid_functions=10"
slow="--data monotonic --functions 400 --preset tiny --batch $((steps * 4)) --seed 3 --quiet --set valid_functions=10"
train() { "$MNP" train "$@"; }

same() { cmp "$1" "$2"; }

four_files() {
    train $tiny --steps $steps --out whole.safetensors &&
        for f in whole.safetensors whole.last.safetensors whole.train.safetensors whole.log.csv; do
            [ -s $f ] || return 1
        done
    [ "$(head -n 1 whole.log.csv)" = step,loss,kl,grad_norm,valid,rate,seconds,rounding,sampling,shift ] &&
        [ "$(tail -n 1 whole.log.csv | cut -d, -f1)" = $steps ]
}
# one process, two with a pause, and other thread counts: the same bytes
resume_is_exact() {
    train $tiny --steps $steps --stop-at $stop --out parts && train --resume parts --quiet &&
        same whole.safetensors parts.safetensors &&
        same whole.last.safetensors parts.last.safetensors &&
        same whole.train.safetensors parts.train.safetensors
}
threads_do_not_matter() {
    for n in 1 2 3 8; do
        train $tiny --steps $steps --threads $n --out t$n && same whole.last.safetensors t$n.last.safetensors ||
            return 1
    done
}
seed_matters() {
    train $tiny --steps $steps --seed 4 --out other 2>/dev/null && return 1 # given twice: refused
    train --data monotonic --functions 60 --preset tiny --batch 8 --seed 4 --quiet --set valid_functions=10 --steps $steps --out other &&
        ! cmp -s whole.last.safetensors other.last.safetensors
}
settings_are_pairs() {
    for bad in lr "lr=1e-3 kappa" "=1" ""; do
        fails 2 "--set wants key=value" train $tiny --steps 2 --set "$bad" --out none || return 1
    done
}
new_schedule() {
    fails 2 "--new-schedule" train --resume parts --steps 60 --quiet &&
        train --resume parts --steps 60 --new-schedule --quiet &&
        [ "$(tail -n 1 parts.log.csv | cut -d, -f1)" = 60 ]
}
# a log without the columns on rounding, as version 0.1 wrote it
older_log() {
    train --data monotonic --functions 60 --preset tiny --batch 8 --seed 4 --quiet --set valid_functions=10 --steps 6 --stop-at 3 \
        --out older || return 1
    cut -d, -f1-7 older.log.csv >older.rows && cp older.rows older.log.csv && train --resume older --quiet || return 1
    [ "$(wc -l <older.log.csv)" = 7 ] && awk -F, 'NF != 10 {exit 1}' older.log.csv &&
        head -n 4 older.log.csv | cut -d, -f1-7 | cmp - older.rows
}
other_options_refused() {
    fails 1 "lr=0.001" train --resume whole --set lr=0.1 --stop-at $steps --quiet &&
        fails 2 "--resume takes --batch" train --resume whole --batch 9 --quiet &&
        fails 2 "goes on in its own files" train --resume whole --out parts --quiet &&
        train --resume whole --out whole.safetensors --stop-at $steps --quiet
}
seconds_calibrates() {
    train --data monotonic --functions 60 --preset tiny --batch 8 --seed 3 --set valid_functions=10 --seconds 1 --json --out s \
        >s.json 2>s.err && grep -q '"steps":' s.json &&
        grep -q -- '--steps' s.err || return 1
    # whether the steps or the clock ended it, it can go on
    train --resume s --quiet && cat s.err
}
# new functions in every pass: another run than with the same ones, and resumed exactly
fresh_functions() {
    local some="--data rbf --functions 20 --preset tiny --batch 8 --seed 3 --quiet --set valid_functions=10 --fresh"
    train $some --steps 12 --out new && train $some --steps 12 --stop-at 7 --out half &&
        train --resume half --quiet && same new.train.safetensors half.train.safetensors &&
        train --data rbf --functions 20 --preset tiny --batch 8 --seed 3 --quiet --set valid_functions=10 --steps 12 --out old &&
        ! cmp -s new.last.safetensors old.last.safetensors &&
        fails 1 "built-in family" train --data bad2.csv --preset tiny --fresh --out x
}
json_keys() {
    train $tiny --steps 5 --json --out j >j.json 2>/dev/null
    for key in steps seconds loss best_valid out; do grep -q "\"$key\":" j.json || return 1; done
    [ "$(wc -l <j.json)" = 1 ]
}
# --seeds 2: two runs at once on the data of the first, which has the bits of a run alone; stopped and resumed together
several_seeds() {
    local some="--data monotonic --functions 60 --preset tiny --batch 8 --quiet --set valid_functions=10 --steps 12"
    train $some --seed 0 --out alone &&
        train $some --seed 0 --seeds 2 --json --out both >both.json || return 1
    for f in safetensors last.safetensors train.safetensors; do
        same alone.$f both-s0.$f && [ -s both-s1.$f ] && ! cmp -s both-s0.$f both-s1.$f || return 1
    done
    [ -s both-s0.log.csv ] && [ -s both-s1.log.csv ] && [ ! -e both.safetensors ] &&
        [ "$(wc -l <both.json)" = 1 ] && grep -q '^{"runs":\[{.*},{.*}\]}$' both.json &&
        [ "$(grep -o '"steps":12' both.json | wc -l)" = 2 ] &&
        grep -q '"out":"both-s0.safetensors"' both.json && grep -q '"out":"both-s1.safetensors"' both.json
}
seeds_resume() {
    local some="--data monotonic --functions 60 --preset tiny --batch 8 --quiet --set valid_functions=10 --steps 12"
    train $some --seed 0 --seeds 2 --stop-at 5 --out halves && ! cmp -s both-s1.last.safetensors halves-s1.last.safetensors &&
        train --resume halves --seeds 2 --quiet || return 1
    for k in 0 1; do
        same both-s$k.last.safetensors halves-s$k.last.safetensors &&
            same both-s$k.train.safetensors halves-s$k.train.safetensors || return 1
    done
    fails 1 "halves-s2" train --resume halves --seeds 3 --quiet
}

# Ctrl-C: exit 130, says how to go on, and the continuation is that of the undisturbed run
interrupted_is_exact() {
    train $slow --steps $steps --out calm || return 1
    "$MNP" train $slow --steps $steps --out rude 2>rude.err &
    local pid=$!
    at_work $pid 0.7 && kill -INT $pid
    wait $pid
    local status=$?
    if [ $status = 0 ]; then # a very fast machine: it was over before
        same calm.last.safetensors rude.last.safetensors
        return
    fi
    [ $status = 130 ] && grep -q 'mnp train --resume' rude.err && train --resume rude --quiet &&
        same calm.last.safetensors rude.last.safetensors
}
# kill -9 at any moment: what is there can be loaded
killed_leaves_a_model() {
    train $slow --steps $steps --stop-at 5 --out dead || return 1
    for wait in 0.05 0.2 0.4; do
        "$MNP" train --resume dead --quiet 2>/dev/null &
        local pid=$!
        sleep $wait
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null
        "$MNP" info dead.safetensors --quiet && "$MNP" info dead.last.safetensors --quiet || return 1
    done
    train --resume dead --quiet && same calm.last.safetensors dead.last.safetensors
}
# no room for the checkpoint: said, and the files of the last good one are intact
full_disk() {
    train $tiny --steps $steps --stop-at $stop --out full || return 1
    cp full.last.safetensors before.safetensors
    (
        trap '' XFSZ
        ulimit -f 8
        "$MNP" train --resume full --quiet
    ) 2>full.err
    [ $? = 1 ] && grep -qE 'full.*(large|space|disk)' full.err && same before.safetensors full.last.safetensors &&
        grep -q "; step $stop is saved, go on with: mnp train --resume full" full.err &&
        train --resume full --quiet && same whole.last.safetensors full.last.safetensors
}
full_disk_at_first() { # nothing is there to go on from, and that is what it says
    (
        trap '' XFSZ
        ulimit -f 8
        train $tiny --steps 5 --out none
    ) 2>none.err
    [ $? = 1 ] && [ "$(wc -l <none.err)" = 1 ] && grep -q '; nothing was saved yet: start it again' none.err &&
        [ "$(echo none.*)" = none.err ]
}

run "the four files of a run" four_files
run "stopping and resuming changes no bit" resume_is_exact
run "1, 2, 3 and 8 threads give the same bits" threads_do_not_matter
run "another seed is another run" seed_matters
run "--set without a value is refused" settings_are_pairs
run "a finished run goes on with --new-schedule" new_schedule
run "a log of version 0.1 goes on" older_log
run "resuming with other options is refused" other_options_refused
run "--seconds finds the number of steps" seconds_calibrates
printf 'function,x,y\na,1,2\na,2,3\nb,1,2\nb,2,3\n' >bad2.csv
run "--fresh draws new functions, and resumes exactly" fresh_functions
run "--json has its keys on one line" json_keys
run "--seeds trains several; the first as if it were alone" several_seeds
run "--seeds goes on with --resume" seeds_resume
run "Ctrl-C saves, and resuming is exact" interrupted_is_exact
run "kill -9 leaves loadable files" killed_leaves_a_model
run "a full disk loses nothing" full_disk
run "a disk that is full from the start" full_disk_at_first

plan_is_listed() {
    "$MNP" info whole.safetensors --plan >plan.txt && grep -q 'attention_grad' plan.txt &&
        grep -q 'once per step' plan.txt && grep -q 'arena .* kB a worker' plan.txt
}
run "info --plan lists the operations" plan_is_listed

# ---- bad input: one line that says what and what to do
run "no data" fails 2 "--data is missing" train --preset tiny
run "unknown family" fails 1 "monotonic" train --data monotonc --preset tiny --out x
run "unknown constant" fails 1 "alpha" train --data monotonic:alfa=2 --preset tiny --out x
run "unknown flag" fails 2 "--steps" train --data monotonic --stpes 5
run "unknown option" fails 2 "flow_hidden" train --data monotonic --functions 20 --set flow_hiden=3 --out x
run "option out of range" fails 1 "bins" train --data monotonic --functions 20 --set bins=1 --out x
run "unknown preset" fails 1 "tiny" train --data monotonic --functions 20 --preset tinny --out x
run "heads must divide the width" fails 1 "heads" train --data monotonic --functions 20 --set heads=5 --out x
run "missing file" fails 1 "nowhere.csv" train --data nowhere.csv --preset tiny --out x
printf 'function,x,y\na,1,2\na,oops,3\n' >bad.csv
run "a word among numbers" fails 1 "bad.csv:3" train --data bad.csv --preset tiny --out x
printf 'function,x,y\na,1\n' >short.csv
run "a short row" fails 1 "short.csv:2" train --data short.csv --preset tiny --out x
: >empty.csv
run "an empty file" fails 1 "empty.csv" train --data empty.csv --preset tiny --out x
printf 'this is no model' >junk.safetensors
run "a file that is no model" fails 1 "junk.safetensors" "$MNP" info junk.safetensors
head -c 1000 whole.safetensors >cut.safetensors
run "a truncated model" fails 1 "cut.safetensors" "$MNP" eval cut.safetensors
run "a folder that is not there" fails 1 "no/such" train $tiny --steps 2 --out no/such/m
check_done
