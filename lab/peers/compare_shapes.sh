#!/usr/bin/env bash
# compare_shapes.sh: training steps of mnp and of PyTorch (lab/peers/torch_shapes.py: packed, compiled, captured) at
# every shape of `mnp bench shapes`, on the same GPU in the same run. Prints the table with ratios and keeps it in
# lab/results/shapes-<gpu>.txt with commit, device, driver and date.
#
#   lab/peers/compare_shapes.sh --seconds 540 --random 10
#       --seconds S      of the whole (default 540)
#       --random K       combinations beside the named shapes (default 10); --seed S draws them (default 1)
#       --shapes A,B     only these; "random" is all combinations
#       --math M         fp32, tf32, bf16 or all (default: tf32 and bf16)
#       --device cpu     for tests: few rounds, fp32, results in the folder RESULTS
#   MNP=build/mnp PYTHON=python3 RESULTS=lab/results COMMIT=<of git> WORKERS=8 BATCH= (another batch for all rows)
#   WAYS=<math:sdpa, then math:plain> (tf32:sdpa,bf16:sdpa takes half the time: attention is nearly always better fused)
#
# First mnp alone, a few shapes in a process; what fails there is tried again alone. Then the peer: some ways compile
# side by side, then wait, and the clock runs for one at a time. Its compiled code stays in TORCHINDUCTOR_CACHE_DIR, so
# that a second run has more time to measure. What does not fit into the time is left out, and its rows say so.
# Rows are in the folder RESULTS as soon as they are known (shapes-<gpu>-mnp.json, shapes-<gpu>-torch.jsonl); nothing
# that fails ends the rest, and all ends within S seconds. Where there is no build/mnp, it is built first.
set -euo pipefail
cd "$(dirname "$0")/../.."
MNP=${MNP:-build/mnp} PYTHON=${PYTHON:-python3} RESULTS=${RESULTS:-lab/results} WORKERS=${WORKERS:-8}
BATCH=${BATCH:-} WAYS=${WAYS:-}
COMMIT=${COMMIT:-$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)}
seconds=540 random=10 seed=1 shapes='' math='tf32 bf16' device=cuda
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || { echo "compare_shapes.sh: $1 needs a value" >&2 && exit 2; }
    case $1 in
        --seconds) seconds=$2 ;;
        --random) random=$2 ;;
        --seed) seed=$2 ;;
        --shapes) shapes=$2 ;;
        --math) math=${2/all/fp32 tf32 bf16} ;;
        --device) device=$2 ;;
        *) echo "compare_shapes.sh: '$1' is no option: the first lines of this file say which there are" >&2 && exit 2 ;;
    esac
    shift 2
done
export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-/tmp/torch-shapes-$(id -u)}

say() { echo "compare_shapes.sh: $*" >&2; }
if [ ! -x "$MNP" ] && [ "$MNP" = build/mnp ]; then
    say "there is no build/mnp: make"
    timeout "$seconds" make -j"$(nproc)" >/dev/null
fi
[ -x "$MNP" ] || { say "there is no $MNP" && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
own=(bench shapes --random "$random" --seed "$seed" --json)
[ -z "$BATCH" ] || own+=(--batch "$BATCH")
peer=(--device "$device" --workers "$WORKERS")
few=()
ways=()
if [ "$device" = cpu ]; then
    math=fp32 name=cpu
    few=(--rounds 2 --seconds 0.2)
    peer+=(--eager --rounds 2 --row-seconds 0.2)
else
    card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
    name=$(echo "${card:-unknown}" | tr -cs 'A-Za-z0-9\n-' '-' | tr '[:upper:]' '[:lower:]')
fi
mkdir -p "$RESULTS"
rows=$RESULTS/shapes-$name-mnp.json ways_of_peer=$RESULTS/shapes-$name-torch.jsonl table=$RESULTS/shapes-$name.txt

"$MNP" "${own[@]}" ${shapes:+--shapes "$shapes"} --rounds 0 --threads 1 >"$work/listed" 2>"$work/told" ||
    { tail -n 1 "$work/told" >&2 && exit 1; }
rm -f "$rows" "$ways_of_peer" "$table"

# Rows of these shapes in a process of its own. Prints the names that have an error.
run_rows() { # MATH END NAME,NAME
    local left=$(($2 - SECONDS)) status=0 why='' more=()
    [ "$left" -gt 1 ] || left=1
    [ "$device" = cpu ] || more=(--math "$1")
    timeout -k 5 $((left + 120 < seconds - SECONDS ? left + 120 : seconds - SECONDS + 1)) \
        "$MNP" "${own[@]}" "${few[@]}" "${more[@]}" --device "$device" --shapes "$3" --budget "$left" \
        >"$work/said" 2>"$work/told" || status=$?
    sed -e '/^training steps at/d' -e '/^shape  /d' "$work/told" >&2
    [ "$status" = 0 ] || why="mnp ended with status $status"
    "$PYTHON" lab/peers/mnp_rows.py keep "$work/listed" "$work/said" "$rows" "$1" "$3" "$why"
}

# mnp in each precision; a sixth of the time for each, and what the last row takes.
for m in $math; do
    end=$((SECONDS + seconds / 6))
    while read -r some <&3; do
        [ "$SECONDS" -lt "$end" ] || break
        failed=$(run_rows "$m" "$end" "$some")
        [ "$failed" != "$some" ] || continue # it was alone
        for one in $failed; do
            [ "$SECONDS" -ge "$end" ] || run_rows "$m" "$end" "$one" >/dev/null
        done
    done 3< <("$PYTHON" lab/peers/mnp_rows.py names "$work/listed" 6)
done

write_table() {
    {
        echo "commit   $COMMIT"
        echo "date     $(date -u +%Y-%m-%d)"
        echo "device   ${card:-$device}, driver ${driver:-none}"
        echo "command  lab/peers/compare_shapes.sh --seconds $seconds --random $random --seed $seed${shapes:+ --shapes $shapes}" \
            "($SECONDS s)"
        echo
        "$PYTHON" lab/peers/shapes_table.py "$rows" "$ways_of_peer"
    } >"$work/file" && mv "$work/file" "$table"
}
write_table || say "no row was measured" # without the peer, should that be all

if [ -z "$WAYS" ]; then
    for m in $math; do ways+=("$m:sdpa"); done
    for m in $math; do ways+=("$m:plain"); done
    WAYS=$(IFS=, && echo "${ways[*]}")
fi
if ! "$PYTHON" -c "import sys, numpy, torch; sys.exit('$device' == 'cuda' and not torch.cuda.is_available())" 2>/dev/null; then
    say "$PYTHON has no PyTorch for $device, or no NumPy: no peer"
else
    left=$((seconds - SECONDS - 5))
    [ "$left" -gt 0 ] || left=1
    timeout -k 5 $((left + 3)) "$PYTHON" lab/peers/torch_shapes.py "$rows" "${peer[@]}" --seconds "$left" \
        --out "$ways_of_peer" --ways "$WAYS" || say "the peer ended with status $?"
fi
write_table && cat "$table"
echo "kept in $table"
