#!/usr/bin/env bash
# made.sh: how the files here were made, with the command of version 0.1:
#   tests/golden/files-0.1/made.sh MNP DIR     (MNP: that version's command, by its full path)
# They are not made again: tests/golden/test_files.c loads them with every later version. One of every
# process, encoder, transition and trained agent, and the state of a training run that was stopped.
set -eu
mnp=$1
cd "$2"

small=(T=2 rff=3 d_z=4 d_r=6 enc_width=8 heads=2 head_hidden=6 flow_hidden=8 bins=4)
run=(--quiet --threads 2 --set valid_functions=4 --set valid_samples=2 --set valid_every=20)

make() { # NAME DATA ARGUMENT...
    local name=$1 data=$2
    shift 2
    "$mnp" train --data "$data" --preset tiny --steps 40 --batch 8 --seed 3 "${run[@]}" "$@" \
        --out "$name.safetensors"
    rm -f "$name.last.safetensors" "$name.train.safetensors" "$name.log.csv"
}
sets() { printf -- '--set\n%s\n' "$@"; }
mapfile -t tiny < <(sets "${small[@]}")
mapfile -t tinynp < <(sets "${small[@]:1}")

make mnp monotonic --functions 40 "${tiny[@]}"
make mnp-norm monotonic --functions 40 "${tiny[@]}" --set layer_norm=on --set rff_append_x=on --set enc_out_relu=on
make mnp-isab monotonic --functions 40 "${tiny[@]}" --set encoder=isab --set n_inducing=3
make mnp-deepset convex --functions 40 "${tiny[@]}" --set encoder=deepset --set pool=sum
make mnp-affine sde --functions 40 "${tiny[@]}" --set transition=affine
make mnp-options rbf --functions 40 "${tiny[@]}" --set rff=0 --set sigma_z=softplus --set head_layers=0 --set n_sab=2 \
    --set ema=0.9 --set y_scale=2 --set y_shift=0.5
make np periodic --functions 40 --model np "${tinynp[@]}"
make gp rbf --functions 40 --model gp
make gp-authors matern --functions 40 --model gp-authors
make cbp convex --functions 40 --model cbp --set flow_hidden=6 --set bins=4
make oracle rbf --functions 40 --model oracle
make wheel wheel:points=60,context=10:50 --functions 40 --set encoder=deepset "${tiny[@]}" --set rff=0 --set transition=affine
make rivers geofluvial:size=16 --functions 8 "${tiny[@]}" --set encoder=isab --set n_inducing=3

# a table of somebody's own: standardised, with names of columns
{
    echo 'curve,t,a,level'
    for c in $(seq 12); do
        for t in $(seq 0 9); do echo "$c,$((1000 + 7 * t)),$((c % 3)),$((500 + 13 * t * (c % 4 + 1) - t * t))"; done
    done
} >curves.csv
make csv curves.csv --function-column curve --x t,a --y level "${tiny[@]}"
rm curves.csv

for agent in maml c-bruno; do
    "$mnp" train --model $agent --data wheel:points=120,context=10:100 --functions 64 --seed 2 --quiet \
        --set hidden=16 --set steps=1500 --set batch=8 --out "$agent.safetensors"
done

# a folder of images: two to train on, one to test on
"$mnp" gen geofluvial --images 3 --size 16 --seed 4 --set nit=40 --quiet --out rivers
rm rivers/sheet.png

# 20 of 40 steps; the test goes on to the end
"$mnp" train --data monotonic --preset tiny --functions 40 --steps 40 --batch 8 --seed 3 "${run[@]}" "${tiny[@]}" \
    --set ema=0.9 --stop-at 20 --out stopped.safetensors
rm -f stopped.safetensors stopped.log.csv
