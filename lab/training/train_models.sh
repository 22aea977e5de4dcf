#!/usr/bin/env bash
# train_models.sh [MODEL...]: trains the models of the six families that are shipped, scores each on
# 5 000 test functions under both protocols and notes the scores in the file. A model is PROCESS-FAMILY
# for seed 0 or PROCESS-FAMILY-sSEED; without arguments mnp and np of all families. A second call goes on
# where the first one was cut. What fails is told and the others go on; the exit status is not 0 then.
#
#   DEVICE=cuda MATH=tf32 TRAINED="NVIDIA H200, tf32" lab/training/train_models.sh
#   STEPS=2000 OUT=/tmp/m lab/training/train_models.sh mnp-rbf-s3
#
# Those of models/ (mnp; convex has no noise and wants fp32: lab/RESULTS.md):
#
#   DEVICE=cuda MATH=tf32 STEPS=135000 AT_ONCE=5 SET="clip=1 beta2=0.99" lab/training/train_models.sh mnp-rbf-s3 ...
#   DEVICE=cuda MATH=fp32 STEPS=36000 SET="clip=1 beta2=0.99" lab/training/train_models.sh mnp-convex-s3
#
#   DEVICE   cpu|cuda (cpu)             MATH     fp32|tf32|bf16 on a GPU (fp32)
#   STEPS    of mnp (60000); np gets five twelfths of it
#   AT_ONCE  trainings side by side (1); on a GPU start nvidia-cuda-mps-control -d before
#   SECONDS_ end all training after so long, resumable (never)
#   SET      more options, "key=value key=value"
#   OUT      folder of the models (out/models)      TRAINED  for the note trained_on
#   FUNCTIONS  test functions of a score (5000)
#
# mnp starts with larger weights on y and a conditioner that is not near the identity: lab/NOTEBOOK.md
# has the trials. np has the sigma floor of the paper's table.
set -eu
cd "$(dirname "$0")/../.."
export MNP=${MNP:-build/mnp} DEVICE=${DEVICE:-cpu} MATH=${MATH:-fp32} STEPS=${STEPS:-60000}
export OUT=${OUT:-out/models} SET=${SET:-} SECONDS_=${SECONDS_:-} FUNCTIONS=${FUNCTIONS:-5000}

train_one() { # name
    local name=$1 process family seed=0 steps=$STEPS options=() file where=(--device "$DEVICE")
    process=${name%%-*} family=${name#*-}
    case $family in *-s[0-9]*) seed=${family##*-s} family=${family%-s*} ;; esac
    file=$OUT/$name.safetensors
    [ "$DEVICE" = cpu ] || where+=(--math "$MATH")
    if [ -f "$file" ] && "$MNP" info "$file" | grep -q '^  score.authors'; then
        return 0 # done in an earlier call
    fi
    if [ -f "$OUT/$name.train.safetensors" ]; then
        set -- train --resume "$file"
    else
        case $process in
        mnp) options=(--set y_gain=4 --set flow_gain=1) ;;
        np) options=(--set sigma_floor=0.05) steps=$((STEPS * 5 / 12)) ;;
        esac
        for o in $SET; do options+=(--set "$o"); done
        set -- train --data "$family" --model "$process" --steps "$steps" --seed "$seed" \
            "${options[@]}" --out "$file"
    fi
    # --foreground: one signal; a second one would end it at once, amid its work on the GPU
    ${SECONDS_:+timeout --foreground -s INT "$SECONDS_"} "$MNP" "$@" "${where[@]}" --quiet \
        >"$OUT/$name.out" 2>&1 || {
        local status=$?
        echo "$name: $(tail -n 1 "$OUT/$name.out")"
        [ "$status" = 124 ] && return 0 # its time is up
        return "$status"
    }
    lab/training/note_scores.sh "$file"
}
export -f train_one

if [ $# -eq 0 ]; then
    for family in rbf matern periodic monotonic convex sde; do set -- "$@" "mnp-$family" "np-$family"; done
fi
mkdir -p "$OUT"
printf '%s\n' "$@" | xargs -P "${AT_ONCE:-1}" -I{} bash -c 'set -eu; train_one {}'
