#!/usr/bin/env bash
# test_train_rows.sh: what lab/predictive/train.sh asks mnp for: each row's model and options, where attend=on starts, what
# is done or begun already, and failures. A script that notes its arguments stands in for mnp.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
export MNP=$tmp/mnp CALLS=$tmp/calls.txt OUT=$tmp/rows
unset DEVICE MATH SET SECONDS_ STEPS AT_ONCE FROM SEED
cat >"$MNP" <<'STUB'
#!/bin/sh
echo "$*" >>"$CALLS"
case "$1 $*" in
train*bad*) echo "no such family" && exit 3 ;;
info*) echo "  steps            24" ;;
esac
STUB
chmod +x "$MNP"

trains() { # ROW-TASK...: the calls that train, one a line
    rm -rf "$OUT" && mkdir -p "$OUT" && : >"$CALLS"
    touch "$OUT"/cnp-{done,begun}.safetensors "$OUT/cnp-begun.train.safetensors" "$OUT/cnp-begun.begun"
    lab/predictive/train.sh "$@" >"$tmp/said.txt" 2>&1
    status=$?
    grep '^train' "$CALLS"
}
is() { # "text" ROW-TASK...
    local want=$1
    shift
    [ "$(trains "$@" | sed "s|$OUT/||g")" = "$want" ] || { cat "$CALLS" "$tmp/said.txt" && return 1; }
}
usual="--set clip=1 --set beta2=0.99"
task_with_a_rows_name() { # the row tnp, the task tnp-rbf; the row tnp-mixture, the task np-eq
    is "train --data tnp-rbf --seed 0 --out tnp-tnp-rbf.safetensors --preset paper --model tnp --seconds 90 $usual --device cpu --quiet" tnp-tnp-rbf &&
        is "train --data np-eq --seed 0 --out tnp-mixture-np-eq.safetensors --preset paper --model tnp --seconds 90 $usual --set head=mixture --device cpu --quiet" tnp-mixture-np-eq
}
on_a_gpu() {
    DEVICE=cuda MATH=tf32 STEPS=7 SEED=2 SET="lr=1e-4" is \
        "train --data sde --seed 2 --out convcnp-sde.safetensors --preset paper --model convcnp --steps 7 $usual --set lr=1e-4 --device cuda --math tf32 --quiet" convcnp-sde
}
attending() { # from a model of the same task, where there is one; those of FROM before those of models/
    local sees="--seconds 90 $usual --set attend=on --set attend_width=128 --set attend_blocks=3 --set lr=5e-4 --device cpu --quiet"
    mkdir -p "$tmp/from" && touch "$tmp/from/mnp-rbf.safetensors"
    is "train --data rbf --seed 0 --out mnp-attend-rbf.safetensors --init models/mnp-rbf.safetensors $sees" mnp-attend-rbf &&
        FROM=$tmp/from is "train --data rbf --seed 0 --out mnp-attend-rbf.safetensors --init $tmp/from/mnp-rbf.safetensors $sees" mnp-attend-rbf &&
        is "train --data np-eq --seed 0 --out mnp-attend-np-eq.safetensors --preset paper --model mnp $sees" mnp-attend-np-eq
}
goes_on() {
    is "train --resume cnp-begun.safetensors --device cpu --quiet" cnp-done cnp-begun
}
failure() { # it is told, and the next one is trained
    trains cnp-bad cnp-rbf >"$tmp/trains.txt"
    [ "$status" != 0 ] && [ "$(wc -l <"$tmp/trains.txt")" = 2 ] &&
        grep -q '^cnp-bad: no such family$' "$tmp/said.txt" && grep -q '^cnp-rbf: 24 steps$' "$tmp/said.txt"
}
no_row() { # before anything is trained
    ! trains cnp-rbf rnp-rbf >"$tmp/trains.txt" && [ "$status" = 2 ] && grep -q 'rnp-rbf is no ROW-TASK' "$tmp/said.txt"
}

run "rows and tasks whose names overlap" task_with_a_rows_name
run "on a GPU, other settings" on_a_gpu
run "attend=on starts from a trained model" attending
run "a second call goes on" goes_on
run "a failure is told" failure
run "no row" no_row
check_done
