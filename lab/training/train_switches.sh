#!/usr/bin/env bash
# train_switches.sh [FAMILY...]: what in training makes conditioning better? Trains mnp of each family (rbf) with one
# switch at a time, and scores draws by the network and by exact conditioning. Stages build on each other:
#
#   base    the options of train_models.sh        empty   p_empty=0.2: four times as many empty contexts
#   floor   sigma_z_floor=0.2: a wider q(z | C)   slept   base, then STEPS / 6 more steps with sleep=0.2
#   awake   base, then as many more without: what slept is compared with
#
#   DEVICE=cuda MATH=tf32 lab/training/train_switches.sh rbf matern
#
#   DEVICE, MATH, STEPS, SECONDS_: as in train_models.sh   SEED (0)   OUT  folder of the models (out/switches)
#   FUNCTIONS  of a score (100)     DRAWS  of each (512)      SIZES  of the contexts ("5 10 20 40")
#
# For each model and size one line of JSON in OUT/scores.jsonl: see mnp eval --condition.
set -eu
cd "$(dirname "$0")/../.."
export MNP=${MNP:-build/mnp} DEVICE=${DEVICE:-cpu} MATH=${MATH:-fp32} STEPS=${STEPS:-60000} SECONDS_=${SECONDS_:-}
OUT=${OUT:-out/switches} SEED=${SEED:-0} FUNCTIONS=${FUNCTIONS:-100} DRAWS=${DRAWS:-512} SIZES=${SIZES:-5 10 20 40}
where=(--device "$DEVICE")
[ "$DEVICE" = cpu ] || where+=(--math "$MATH")

train() { # SWITCH FAMILY OPTIONS: a training of its own
    OUT="$OUT/$1" SET="$3" lab/training/train_models.sh "mnp-$2-s$SEED"
}
go_on() { # SWITCH FAMILY OPTION: on from base, in files of its own
    local name="mnp-$2-s$SEED" ending
    mkdir -p "$OUT/$1"
    for ending in safetensors last.safetensors train.safetensors; do
        cp "$OUT/base/$name.$ending" "$OUT/$1/$name.$ending"
    done
    "$MNP" train --resume "$OUT/$1/$name.safetensors" --new-schedule --steps $((STEPS / 6)) --set "$3" --set lr=5e-4 \
        "${where[@]}" --quiet
}
score() { # SWITCH FAMILY
    local m names
    for m in $SIZES; do
        names="\"switch\":\"$1\",\"family\":\"$2\",\"m\":$m"
        "$MNP" eval "$OUT/$1/mnp-$2-s$SEED.safetensors" --functions "$FUNCTIONS" --context "$m:$m" --condition exact \
            --draws "$DRAWS" --seed 5 --device "$DEVICE" --json | sed "s/^{/{$names,/" >>"$OUT/scores.jsonl"
    done
}

[ $# -gt 0 ] || set -- rbf
mkdir -p "$OUT"
for family in "$@"; do
    train base "$family" ""
    train empty "$family" p_empty=0.2
    train floor "$family" sigma_z_floor=0.2
    go_on awake "$family" sleep=0
    go_on slept "$family" sleep=0.2
    for switch in base empty floor awake slept; do score "$switch" "$family"; done
done
