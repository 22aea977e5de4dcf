#!/usr/bin/env bash
# demo.sh: the whole journey in about a minute and a half on two cores: a table of curves, the best of
# several models for it, a forecast and its picture; a shipped model, given four points; then a small
# Markov Neural Process trained on functions of a family, its score, and pictures.
set -eu
cd "$(dirname "$0")/.."
mnp=${BUILD:-build}/mnp
out=out/demo
mkdir -p "$out"
show() {
    printf '\n$ mnp %s\n' "$*"
    "$mnp" "$@"
}

# A person's table: which model is best for it, and how one plant goes on.
printf 'day,height_cm\n4,1.3\n12,6.8\n30,40.7\n' >"$out/plant.csv"
rm -f "$out"/plants.*
show fit examples/data/plants.csv --seconds 30 --out "$out/plants.safetensors"
show predict "$out/plants.safetensors" --context "$out/plant.csv" --grid 0:60:61 --out "$out/plant-forecast.csv"
show plot "$out/plants.safetensors" --context "$out/plant.csv" --grid 0:60:61 --out "$out/plant.svg"

printf 'x,y\n-1.5,-0.9\n-0.4,-0.35\n0.3,0.3\n1.2,0.6\n' >"$out/points.csv"

# A full-size shipped model: conditioned, drawn, scored beside what its file says.
shipped=
for name in mnp-monotonic mnp-rbf; do
    [ -n "$shipped" ] || [ ! -e "models/$name.safetensors" ] || shipped=models/$name.safetensors
done
if [ -n "$shipped" ]; then
    show predict "$shipped" --context "$out/points.csv" --grid=-2:2:100 --out "$out/shipped.csv"
    show plot "$shipped" --context "$out/points.csv" --grid=-2:2:200 --out "$out/shipped.svg"
    show eval "$shipped" --functions 50 --draws 0 --protocol strict
    noted=$("$mnp" info "$shipped" | sed -n 's/^  score\.strict  *//p')
    printf '  its file says    %s\n' "${noted:-nothing: lab/training/note_scores.sh $shipped}"
else
    printf 'There is no models/mnp-monotonic.safetensors: no shipped model is shown.\n'
fi

show gen monotonic --functions 200 --seed 1 --out "$out/curves.csv"
show train --data monotonic --preset tiny --batch 32 --set lr=3e-3 --seconds "${DEMO_SECONDS:-20}" \
    --seed 1 --out "$out/monotonic.safetensors"
show eval "$out/monotonic.safetensors" --functions 500 --protocol strict

show predict "$out/monotonic.safetensors" --context "$out/points.csv" --grid=-2:2:100 \
    --out "$out/prediction.csv"
show plot "$out/monotonic.safetensors" --context "$out/points.csv" --grid=-2:2:200 \
    --out "$out/conditioned.svg"
show plot "$out/monotonic.safetensors" --chain --grid=-2:2:200 --out "$out/chain.svg"
show check "$out/monotonic.safetensors" --functions 10

printf '\nLook at %s/plants.html (the report of the fit), %s/plant.svg, %s/conditioned.svg and %s/chain.svg%s.\n' "$out" "$out" "$out" "$out" \
    "${shipped:+, and $out/shipped.svg of the shipped model}"
printf 'Your own curves (docs/user/tutorial.md):\n  mnp fit yours.csv\n'
printf 'Touch the models in the browser (docs/user/explorer.md):\n  mnp serve\n'
