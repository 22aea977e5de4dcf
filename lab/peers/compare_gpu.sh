#!/usr/bin/env bash
# compare_gpu.sh: a training step of mnp and of PyTorch (lab/peers/torch_peer.py: packed, compiled,
# captured) on the same GPU in the same run, in tf32 and with a bf16 encoder: paper preset, batch 100,
# 128 points. mnp is timed with contexts as training draws them and with 50 points in all of them. The
# peer gets 50 everywhere: of contexts that differ it would make 50 by padding, and mask besides. So
# the ratio to its fastest way is that of equal work; the one to the step as mnp trains is printed
# too. Everything is kept in lab/results/gpu-<name>.txt with commit, device, driver and date.
#
#   lab/peers/compare_gpu.sh      MNP=build/mnp PYTHON=python3 RESULTS=lab/results COMMIT=<of git>
#                             LIMIT=80 (seconds for compiling) STEPS=300 TUNE=0
#
# The ways of the peer compile side by side, then all wait; the clock runs for one at a time, when
# nothing else is at work. A way that has not compiled within LIMIT runs captured and uncompiled, and
# its line says so. TUNE=1 adds ways with max-autotune, which take minutes to compile: raise LIMIT.
# Takes at most about LIMIT + 70 seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
MNP=${MNP:-build/mnp} PYTHON=${PYTHON:-python3} RESULTS=${RESULTS:-lab/results}
LIMIT=${LIMIT:-80} STEPS=${STEPS:-300} TUNE=${TUNE:-0} BATCH=${BATCH:-100}
COMMIT=${COMMIT:-$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)}
ways=("tf32 --attention sdpa" "tf32 --attention plain" "bf16 --attention sdpa"
    "bf16 --attention plain")
if [ "$TUNE" = 1 ]; then
    tuned="--compile-mode max-autotune-no-cudagraphs"
    ways+=("tf32 --attention sdpa $tuned" "bf16 --attention sdpa $tuned")
fi
export TORCHINDUCTOR_COMPILE_THREADS=${TORCHINDUCTOR_COMPILE_THREADS:-4}

work=$(mktemp -d)
pids=()
finish() {
    for pid in $(jobs -pr); do kill "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

start_peer() { # number, math, more arguments...
    local k=$1 math=$2
    shift 2
    mkfifo "$work/$k"
    "$PYTHON" lab/peers/torch_peer.py --device cuda --math "$math" --packed --compile \
        --compile-limit "$LIMIT" --batch "$BATCH" --steps "$STEPS" --warm 30 --threads 4 \
        --hold "$work/$k" "$@" >"$work/$k.out" 2>"$work/$k.err" &
    pids+=($!)
}

wait_ready() { # number; false: it ended before it was ready
    while [ ! -e "$work/$1.ready" ]; do
        kill -0 "${pids[$1]}" 2>/dev/null || return 1
        sleep 0.2
    done
}

time_peer() { # number; prints its line of results
    if ! wait_ready "$1"; then
        echo "torch ${ways[$1]}: failed: $(tail -n 1 "$work/$1.err")"
        return
    fi
    echo go >"$work/$1"
    wait "${pids[$1]}" || echo "torch ${ways[$1]}: failed: $(tail -n 1 "$work/$1.err")"
    cat "$work/$1.out"
}

number() { sed -n "s/.*\"$1\":\\([0-9.e+-]*\\).*/\\1/p" "$work/own.json"; }

verdict() { # math, bar of our step, what the peer must reach to count
    local own equal peer
    own=$(number "step_$1_ms") equal=$(number "step_$1_m50_ms")
    peer=$(cat "$work"/*.out | sed -n "s/^torch [^ ]* [^ ]* $1 .* ms_per_step \\([0-9.]*\\).*/\\1/p" |
        sort -g | head -n 1)
    if [ -z "$own" ] || [ -z "$equal" ] || [ -z "$peer" ]; then
        echo "$1: no comparison: ${own:+mnp $own ms, }${peer:+PyTorch $peer ms, }the other is missing"
        return
    fi
    awk -v math="$1" -v own="$own" -v equal="$equal" -v peer="$peer" -v bar="$2" -v counts="$3" '
        BEGIN {
        mark = peer / equal >= 5 ? "reached" : "FALLS SHORT"
        if (peer > counts) mark = "but THE PEER IS TOO SLOW TO COUNT"
        printf "%s: mnp %.3f ms as it trains (bar %.1f %s); 50 points in every context: mnp %.3f ms, ",
            math, own, bar, (own <= bar ? "reached" : "FALLS SHORT"), equal
        printf "fastest PyTorch %.3f ms (it must reach %.0f): %.2f times faster (bar 5) %s; ",
            peer, counts, peer / equal, mark
        printf "%.2f times the step as it trains\n", peer / own }'
}

device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
name=$(echo "${device:-unknown}" | tr -cs 'A-Za-z0-9\n-' '-' | tr '[:upper:]' '[:lower:]')
file=$RESULTS/gpu-$name.txt
mkdir -p "$RESULTS"

for k in "${!ways[@]}"; do
    # shellcheck disable=SC2086
    start_peer "$k" ${ways[$k]}
done
# in the meantime: does the peer's arrangement have the gradients of the plain one on this GPU?
agreed=$("$PYTHON" lab/peers/torch_peer.py --check --device cuda --math tf32 --batch "$BATCH" \
    2>"$work/check.err" || tail -n 1 "$work/check.err")
for k in "${!ways[@]}"; do wait_ready "$k" || true; done
prepared=$SECONDS
if ! "$MNP" bench step eval --device cuda --math all --runs 5 --batch "$BATCH" --json \
    >"$work/own.json" 2>"$work/own.err"; then
    tail -n 1 "$work/own.err" >&2
    exit 1
fi
{
    echo "commit   $COMMIT"
    echo "date     $(date -u +%Y-%m-%d)"
    echo "device   ${device:-unknown}, driver ${driver:-unknown}"
    echo "peer     packed against plain, tf32: $agreed"
    echo "command  lab/peers/compare_gpu.sh (the peer was ready after $prepared s)"
    echo
    cat "$work/own.err"
    echo
    for k in "${!ways[@]}"; do time_peer "$k"; done
    echo
    verdict tf32 1.5 9
    verdict bf16 1.1 6
} >"$work/file"
cat "$work/file"
mv "$work/file" "$file"
echo "kept in $file ($SECONDS s)"
