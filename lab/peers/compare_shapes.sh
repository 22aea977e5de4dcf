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
# First mnp alone, then the peer: some ways compile side by side, then wait, and the clock runs for one at a time.
# Its compiled code stays in TORCHINDUCTOR_CACHE_DIR, so that a second run has more time to measure. What does
# not fit into the time is left out, and its rows say so.
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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
own=(bench shapes --random "$random" --seed "$seed" --json)
[ -z "$shapes" ] || own+=(--shapes "$shapes")
[ -z "$BATCH" ] || own+=(--batch "$BATCH")
peer=(--device "$device" --workers "$WORKERS")
ways=()
if [ "$device" = cpu ]; then
    math=fp32 name=cpu
    own+=(--rounds 2 --seconds 0.2)
    peer+=(--eager --rounds 2 --row-seconds 0.2)
else
    card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
    name=$(echo "${card:-unknown}" | tr -cs 'A-Za-z0-9\n-' '-' | tr '[:upper:]' '[:lower:]')
fi

# mnp in each precision; a sixth of the time for each at most. One object with all rows.
for m in $math; do
    where=(--device "$device")
    [ "$device" = cpu ] || where+=(--math "$m")
    if ! "$MNP" "${own[@]}" "${where[@]}" --budget "$((seconds / 6))" >"$work/$m.json" 2>"$work/$m.err"; then
        tail -n 1 "$work/$m.err" >&2
        exit 1
    fi
    cat "$work/$m.err"
done
# shellcheck disable=SC2086
(cd "$work" && "$PYTHON" -c '
import json, sys
rows = [r for m in sys.argv[1:] for r in json.loads(open(m + ".json").read().strip().splitlines()[-1]).get("shapes", [])]
print(json.dumps({"shapes": rows}))' $math) >"$work/mnp.json"
if [ -z "$WAYS" ]; then
    for m in $math; do ways+=("$m:sdpa"); done
    for m in $math; do ways+=("$m:plain"); done
    WAYS=$(IFS=, && echo "${ways[*]}")
fi
left=$((seconds - SECONDS - 5))
"$PYTHON" lab/peers/torch_shapes.py "$work/mnp.json" "${peer[@]}" --seconds "$left" --out "$work/torch.jsonl" \
    --ways "$WAYS"
mkdir -p "$RESULTS"
{
    echo "commit   $COMMIT"
    echo "date     $(date -u +%Y-%m-%d)"
    echo "device   ${card:-$device}, driver ${driver:-none}"
    echo "command  lab/peers/compare_shapes.sh --seconds $seconds --random $random --seed $seed${shapes:+ --shapes $shapes}" \
        "($SECONDS s)"
    echo
    "$PYTHON" lab/peers/shapes_table.py "$work/mnp.json" "$work/torch.jsonl"
} >"$work/file"
cat "$work/file"
mv "$work/file" "$RESULTS/shapes-$name.txt"
cp "$work/mnp.json" "$RESULTS/shapes-$name-mnp.json"
cp "$work/torch.jsonl" "$RESULTS/shapes-$name-torch.jsonl" 2>/dev/null || true
echo "kept in $RESULTS/shapes-$name.txt"
