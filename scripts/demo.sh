#!/usr/bin/env bash
# demo.sh: the whole journey in about a minute and a half on two cores: functions of a family, a
# small Markov Neural Process trained on them, its score on functions it has not seen, and pictures.
set -eu
cd "$(dirname "$0")/.."
mnp=${BUILD:-build}/mnp
out=out/demo
mkdir -p "$out"
show() {
    printf '\n$ mnp %s\n' "$*"
    "$mnp" "$@"
}

show gen monotonic --functions 200 --seed 1 --out "$out/curves.csv"
show train --data monotonic --preset tiny --batch 32 --set lr=3e-3 --seconds "${DEMO_SECONDS:-60}" \
    --seed 1 --out "$out/monotonic.safetensors"
show eval "$out/monotonic.safetensors" --functions 500 --protocol strict

printf 'x,y\n-1.5,-0.9\n-0.4,-0.35\n0.3,0.3\n1.2,0.6\n' >"$out/points.csv"
show predict "$out/monotonic.safetensors" --context "$out/points.csv" --grid=-2:2:100 \
    --out "$out/prediction.csv"
show plot "$out/monotonic.safetensors" --context "$out/points.csv" --grid=-2:2:200 \
    --out "$out/conditioned.svg"
show plot "$out/monotonic.safetensors" --chain --grid=-2:2:200 --out "$out/chain.svg"
show check "$out/monotonic.safetensors" --functions 10

printf '\nLook at %s/conditioned.svg and %s/chain.svg.\n' "$out" "$out"
printf 'Your own curves: mnp train --data yours.csv --preset tiny --seconds 60 --out yours.safetensors\n'
