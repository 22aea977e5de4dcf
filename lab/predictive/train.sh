#!/usr/bin/env bash
# train.sh ROW-TASK...: trains models for the table of `mnp repro predictive`, as ROW-TASK.safetensors in a folder that its
# --trained takes: mnp-rbf, mnp-attend-rbf, np-rbf, cnp-rbf, tnp-rbf, tnp-mixture-rbf, convcnp-rbf; tasks are the families
# of functions (rbf, sde, tnp-rbf, np-matern, ...). All at preset paper. A second call goes on where the first was cut.
# What fails is told and the others go on; the exit status is not 0 then.
#
#   DEVICE=cuda MATH=tf32 SECONDS_=90 AT_ONCE=5 lab/predictive/train.sh {tnp,convcnp}-{rbf,matern,periodic,monotonic,sde}
#   STEPS=20000 OUT=/tmp/rows lab/predictive/train.sh mnp-np-eq
#
#   SECONDS_  of each training; the number of steps is chosen from a short trial (90)     STEPS  instead of it
#   DEVICE    cpu|cuda (cpu)         MATH      fp32|tf32|bf16 on a GPU (fp32)
#   AT_ONCE   trainings side by side (1); on a GPU start nvidia-cuda-mps-control -d before
#   OUT       folder of the models (out/rows), from the top of the repository     SEED  (0)
#   FROM      folder of the mnp-TASK.safetensors that mnp-attend-TASK starts from (OUT, then models); without one it
#             starts fresh
#   SET       more options, "key=value key=value"
set -eu
cd "$(dirname "$0")/../.."
export MNP=${MNP:-build/mnp} DEVICE=${DEVICE:-cpu} MATH=${MATH:-fp32} SECONDS_=${SECONDS_:-90} STEPS=${STEPS:-}
export OUT=${OUT:-out/rows} FROM=${FROM:-} SEED=${SEED:-0} SET=${SET:-}

# The longest row's name that begins NAME.
row_of() {
    local row
    for row in mnp-attend tnp-mixture convcnp mnp np cnp tnp; do
        [ "${1#"$row"-}" = "$1" ] || { echo "$row" && return; }
    done
    echo "train.sh: $1 is no ROW-TASK: mnp-rbf, tnp-sde, ..." >&2
    return 2
}
begins_with() { # TASK: the model whose weights attend=on is added to
    local folder
    for folder in ${FROM:+"$FROM"} "$OUT" models; do
        [ ! -f "$folder/mnp-$1.safetensors" ] || { echo "$folder/mnp-$1.safetensors" && return; }
    done
}
train_one() { # ROW-TASK
    local name=$1 row task file options='clip=1 beta2=0.99' from='' more=()
    row=$(row_of "$name")
    task=${name#"$row"-} file=$OUT/$name.safetensors
    [ "$DEVICE" = cpu ] || more+=(--math "$MATH")
    if [ -f "$file" ] && [ ! -f "$OUT/$name.begun" ]; then return 0; fi # done in an earlier call
    if [ -f "$OUT/$name.train.safetensors" ]; then
        set -- train --resume "$file"
    else
        : >"$OUT/$name.begun"
        set -- train --data "$task" --seed "$SEED" --out "$file"
        case $row in
        mnp) options+=' y_gain=4 flow_gain=1' ;;
        mnp-attend) options+=' attend=on attend_width=128 attend_blocks=3 lr=5e-4' from=$(begins_with "$task") ;;
        np) options='sigma_floor=0.05' ;;
        tnp-mixture) options+=' head=mixture' ;;
        esac
        if [ -n "$from" ]; then set -- "$@" --init "$from"; else set -- "$@" --preset paper --model "${row%-*}"; fi
        if [ -n "$STEPS" ]; then set -- "$@" --steps "$STEPS"; else set -- "$@" --seconds "$SECONDS_"; fi
        for o in $options $SET; do set -- "$@" --set "$o"; done
    fi
    "$MNP" "$@" --device "$DEVICE" "${more[@]}" --quiet >"$OUT/$name.out" 2>&1 || {
        local status=$?
        echo "$name: $(tail -n 1 "$OUT/$name.out")"
        return "$status"
    }
    rm -f "$OUT/$name.begun"
    echo "$name: $("$MNP" info "$file" | sed -n 's/^  steps *//p') steps"
}
export -f train_one row_of begins_with

[ $# -gt 0 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" && exit 2; }
for name; do row_of "$name" >/dev/null; done
mkdir -p "$OUT"
printf '%s\n' "$@" | xargs -P "${AT_ONCE:-1}" -I{} bash -c 'set -eu; train_one {}'
