#!/usr/bin/env bash
# test_train_models.sh: what lab/training/train_models.sh asks mnp for: each model's options, what is done or
# begun already, and failures. A script that notes its arguments stands in for mnp.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
export MNP=$tmp/mnp CALLS=$tmp/calls.txt OUT=$tmp/models STEPS=24
unset DEVICE MATH SET SECONDS_ AT_ONCE TRAINED FUNCTIONS
cat >"$MNP" <<'STUB'
#!/bin/sh
echo "$*" >>"$CALLS"
case "$1 $*" in
train*bad*) echo "no such family" && exit 3 ;;
train*slow*) exec sleep 30 ;;
info*done*) echo "  score.authors    1.0 +- 0.1" ;;
info*) echo "  format    1" ;;
esac
STUB
chmod +x "$MNP"

trains() { # MODEL...: the calls that train, one a line
    rm -rf "$OUT" && mkdir -p "$OUT" && : >"$CALLS"
    touch "$OUT/mnp-done.safetensors" "$OUT/mnp-begun.train.safetensors"
    lab/training/train_models.sh "$@" >"$tmp/said.txt" 2>&1
    status=$?
    grep '^train' "$CALLS"
}
is() { # "text" MODEL...
    local want=$1
    shift
    [ "$(trains "$@" | sed "s|$OUT/||")" = "$want" ] || { cat "$CALLS" "$tmp/said.txt" && return 1; }
}
of_mnp() {
    is "train --data rbf --model mnp --steps 24 --seed 3 --set y_gain=4 --set flow_gain=1 --out mnp-rbf-s3.safetensors --device cpu --quiet" mnp-rbf-s3
}
of_np() {
    DEVICE=cuda MATH=tf32 SET="clip=1" is "train --data sde --model np --steps 10 --seed 0 --set sigma_floor=0.05 --set clip=1 --out np-sde.safetensors --device cuda --math tf32 --quiet" np-sde
}
all_of_them() {
    [ "$(trains | wc -l)" = 12 ] && [ "$(trains | sort -u | wc -l)" = 12 ] &&
        [ "$(trains | grep -c -- '--data monotonic --model mnp')" = 1 ]
}
scored() {
    trains mnp-rbf >"$tmp/trains.txt"
    [ "$(grep -c '^eval .*--functions 5000 .*--note' "$CALLS")" = 2 ]
}
failure() { # it is told, and the next one is trained
    trains mnp-bad mnp-rbf >"$tmp/trains.txt"
    [ "$status" != 0 ] && [ "$(wc -l <"$tmp/trains.txt")" = 2 ] &&
        grep -q '^mnp-bad: no such family$' "$tmp/said.txt"
}
out_of_time() {
    SECONDS_=0.2 trains mnp-slow >"$tmp/trains.txt"
    [ "$status" = 0 ] && ! grep -q '^eval' "$CALLS"
}

run "a model of a seed" of_mnp
run "the other process, on a GPU" of_np
run "without names: both of six families" all_of_them
run "what is scored is done" is "" mnp-done
run "what was cut goes on" is "train --resume mnp-begun.safetensors --device cpu --quiet" mnp-begun
run "a trained model is scored under both protocols" scored
run "a failure is told and keeps nobody" failure
run "a run whose time is up is no failure" out_of_time
check_done
