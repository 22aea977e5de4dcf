#!/usr/bin/env bash
# train_wheel.sh: trains the models that play the wheel, models/wheel-{mnp,np}-t{1,5}.safetensors,
# and the agents wheel-{maml,c-bruno}.safetensors, and prints their regret. Settings come from the
# environment:
#
#   DEVICE=cuda STEPS=100000 lab/training/train_wheel.sh             all six
#   MODELS="mnp-t1" STEPS=5000 OUT=/tmp/w lab/training/train_wheel.sh
#
#   MODELS     which of mnp-t1 np-t1 mnp-t5 np-t5 maml c-bruno (the last two take a minute, on the CPU)
#   DEVICE     cpu or cuda                      STEPS      length of the schedule
#   FUNCTIONS  wheels to train on               BATCH      wheels of a step
#   DATA       the family with its constants    SEED       of data and weights
#   OUT        folder of the models             SETS       more options, "key=value key=value"
#   TRIALS     of the regret printed after; 0 prints none
#
# The wheels' actions are partly a player's (docs/user/bandits.md says why); DATA=wheel is the paper's data,
# all actions random. np-t5 is the Neural Process with the training budget of mnp-t5: as many steps as make the same
# number of network passes, five times those of np-t1.
set -eu
cd "$(dirname "$0")/../.."
MNP=${MNP:-build/mnp}
models=${MODELS:-mnp-t1 np-t1 mnp-t5 np-t5 maml c-bruno}
device=${DEVICE:-cpu} steps=${STEPS:-100000} out=${OUT:-models}
functions=${FUNCTIONS:-20000} batch=${BATCH:-64} seed=${SEED:-1}
data=${DATA:-wheel:played=0:1} trials=${TRIALS:-20}

read -ra more <<<"${SETS:-}"
sets=()
for s in "${more[@]}"; do sets+=(--set "$s"); done

train() { # name process preset steps
    "$MNP" train --data "$data" --functions "$functions" --model "$2" --preset "$3" \
        --steps "$4" --batch "$batch" --seed "$seed" --device "$device" \
        --out "$out/wheel-$1.safetensors" ${sets[@]+"${sets[@]}"}
}
train_agent() { # name: with its own number of steps
    "$MNP" train --data "$data" --functions "$functions" --model "$1" --seed "$seed" \
        --out "$out/wheel-$1.safetensors"
}
regret() { # name process steps trials
    for delta in 0.5 0.7 0.9 0.95 0.99; do
        "$MNP" bandit "$out/wheel-$1.safetensors" --agent "$2" --delta "$delta" --steps "$3" \
            --trials "$4" --json --quiet |
            sed -E "s/.*\"cumulative\":([^,]*),\"cumulative_sd\":([^,]*),.*\"simple\":([^,]*),.*/$1 H=$3 delta=$delta cumulative \1 sd \2 simple \3/"
    done
}

mkdir -p "$out"
for name in $models; do
    case $name in
    mnp-t1) train "$name" mnp wheel "$steps" ;;
    np-t1) train "$name" np wheel "$steps" ;;
    mnp-t5) train "$name" mnp wheel5 "$steps" ;;
    np-t5) train "$name" np wheel5 $((5 * steps)) ;;
    maml | c-bruno) train_agent "$name" ;;
    *) echo "there is no model $name" >&2 && exit 2 ;;
    esac
    [ "$trials" = 0 ] && continue
    regret "$name" "${name%-*}" 2000 $((5 * trials))
    [ "${name#*-}" = t5 ] || regret "$name" "${name%-*}" 80000 "$trials"
done
