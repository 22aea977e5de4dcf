#!/usr/bin/env bash
# test_lock.sh: an output belongs to one process: a second one is refused before it does anything, and
# what a killed one left does not stand in the way.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

tiny="--data monotonic --functions 40 --preset tiny --batch 4 --seed 3 --quiet --set valid_functions=2 --threads 1"
small="--functions 4 --train-functions 10 --batch 4 --seeds 1 --preset tiny --quiet"

# name: until a process of this name's lock is there
locked() {
    for _ in $(seq 400); do
        [ -e "$1" ] && return 0
        sleep 0.02
    done
    return 1
}
# lock text command...: while a first process that writes for hours has the lock, a second is refused;
# then the first is killed, and its lock file alone is no hindrance
first=0
refuses() {
    local lock=$1 text=$2 rc
    shift 2
    locked "$lock" && sleep 0.3 && fails 1 "is being written by another run (process $first)" "$@" &&
        grep -qF "$text" err.txt && grep -qF 'give another --out' err.txt && kill -0 $first
    rc=$?
    kill -9 $first
    wait $first 2>/dev/null
    return $rc
}
two_trainings() {
    "$MNP" train $tiny --steps 400 --stop-at 3 --out a || return 1
    sha256sum a.* >before.txt
    "$MNP" train --resume a --new-schedule --steps 100000000 --quiet &
    first=$!
    refuses a.safetensors.lock a.safetensors "$MNP" train $tiny --steps 5 --out a.safetensors &&
        sha256sum -c --quiet before.txt && [ -e a.safetensors.lock ] &&
        "$MNP" train --resume a --stop-at 5 --quiet && [ ! -e a.safetensors.lock ]
}
through_a_link() { # the file is there already: the earlier test left it
    ln -s a.safetensors l.safetensors
    "$MNP" train $tiny --steps 100000000 --out a &
    first=$!
    refuses a.safetensors.lock l.safetensors "$MNP" train $tiny --steps 5 --out l
}
one_of_several_seeds() {
    "$MNP" train $tiny --steps 100000000 --out s-s4 &
    first=$!
    refuses s-s4.safetensors.lock s-s4 "$MNP" train $tiny --steps 5 --seeds 2 --out s && [ -z "$(ls s-s3*)" ]
}
two_agents() {
    "$MNP" train --model maml --data wheel --functions 20 --steps 10000000 --out g.safetensors --quiet &
    first=$!
    refuses g.safetensors.lock g.safetensors "$MNP" train --model maml --data wheel --functions 20 --steps 3 --out g.safetensors --quiet &&
        "$MNP" train --model maml --data wheel --functions 20 --steps 3 --out g.safetensors --quiet && [ ! -e g.safetensors.lock ]
}
two_studies() {
    local cell
    "$MNP" repro table1 $small --models np --data rbf --steps 10000000 --out q &
    first=$!
    refuses q/.lock q "$MNP" repro table1 $small --models np --data rbf --steps 3 --out q || return 1
    touch q/cells/x.json.tmp-123 q/x.tmp-12-3 q/cells/keep.tmp-x
    "$MNP" repro table1 $small --models oracle --data rbf --out q || return 1
    cell=$(ls q/cells/oracle*.json) && touch "${cell%json}train.safetensors" "${cell%json}last.safetensors"
    "$MNP" repro table1 $small --models oracle --data rbf --out q && [ ! -e q/.lock ] &&
        [ -z "$(find q/cells -name 'oracle*train*' -o -name 'oracle*last*')" ] &&
        [ "$(find q -name '*.tmp-*')" = q/cells/keep.tmp-x ]
}
two_image_folders() {
    "$MNP" gen geofluvial --images 1000000 --size 64 --out i --quiet &
    first=$!
    refuses i/.lock i "$MNP" gen geofluvial --images 4 --size 16 --out i --quiet
}
# of other runs nothing is touched: not their lock, not what they have half-written
others_are_left() {
    touch a.last.safetensors.tmp-77 a.log.csv.tmp-77-1 a.more.safetensors.tmp-5 a.safetensors.tmp-5x
    "$MNP" train --resume a --stop-at 6 --quiet &&
        [ "$(ls a.*tmp-* | tr '\n' ' ')" = "a.more.safetensors.tmp-5 a.safetensors.tmp-5x " ]
}
run "two trainings of one file" two_trainings
run "two trainings, one of them through a link" through_a_link
run "several seeds, one of them taken" one_of_several_seeds
run "two agents of one file" two_agents
run "two studies in one folder" two_studies
run "two folders of images" two_image_folders
run "what killed runs left goes, and nothing else" others_are_left
check_done
