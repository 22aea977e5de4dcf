#!/usr/bin/env bash
# compare_peer.sh: a training step of mnp against PyTorch (lab/peers/torch_peer.py: both arrangements,
# eager and compiled, fused and plain attention) on this processor, same threads, in alternating
# rounds. Prints the best milliseconds of each and how many times faster mnp is than the fastest of
# the others.
#
#   lab/peers/compare_peer.sh     MNP=build/mnp PYTHON=python3 THREADS=2 ROUNDS=3 STEPS=10 LIMIT=300
#                             (LIMIT: seconds for compiling; then the way runs uncompiled)
#   PREFIX="chrt -f 1" lab/peers/compare_peer.sh  on a busy machine, where it is allowed
set -euo pipefail
cd "$(dirname "$0")/../.."
MNP=${MNP:-build/mnp} PYTHON=${PYTHON:-python3} THREADS=${THREADS:-2} ROUNDS=${ROUNDS:-3}
PREFIX=${PREFIX:-}
STEPS=${STEPS:-10} LIMIT=${LIMIT:-300}
ways=("--attention sdpa" "--attention plain" "--packed --attention sdpa"
    "--packed --attention plain" "--packed --compile --attention sdpa"
    "--packed --compile --attention plain")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
own=() peer=()

least() { printf '%s\n' "$@" | sort -g | head -n 1; }

own_step() { # milliseconds
    # shellcheck disable=SC2086
    $PREFIX "$MNP" bench step --threads "$THREADS" --seconds 5 --json 2>"$log" |
        sed -n 's/.*"step_ms":\([0-9.e+-]*\).*/\1/p'
}

peer_step() { # way
    # shellcheck disable=SC2086
    $PREFIX "$PYTHON" lab/peers/torch_peer.py --threads "$THREADS" --steps "$STEPS" --warm 3 \
        --compile-limit "$LIMIT" $1 2>"$log" |
        sed -n 's/.* best \([0-9.]*\).*/\1/p'
}

take() { # name, milliseconds
    [ -n "$2" ] || { echo "$1 gave no time: $(tail -n 1 "$log")" >&2 && exit 1; }
    printf 'round %d  %-40s %9.1f ms\n' "$round" "$1" "$2"
}

for ((round = 1; round <= ROUNDS; round++)); do
    own+=("$(own_step)")
    take mnp "${own[-1]}"
    for way in "${ways[@]}"; do
        peer+=("$(peer_step "$way")")
        take "torch $way" "${peer[-1]}"
    done
done
awk -v own="$(least "${own[@]}")" -v peer="$(least "${peer[@]}")" -v threads="$THREADS" 'BEGIN {
    printf "%d threads: mnp %.1f ms, fastest PyTorch %.1f ms: %.2f times faster (bar 2) %s\n",
        threads, own, peer, peer / own, (peer / own >= 2 ? "reached" : "FALLS SHORT") }'
