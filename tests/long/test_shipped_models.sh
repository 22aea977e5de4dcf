#!/usr/bin/env bash
# test_shipped_models.sh: every shipped model does what its file or the documentation says: those of table
# 1 on 200 test functions, the players of the wheel in a few short games. The model of river images has a
# test of its own, test_geofluvial_model.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
# shellcheck source=tests/shipped.sh
. tests/shipped.sh
export MNP=${MNP:-$PWD/build/mnp}

# Cumulative regret of four trials of 2 000 steps, in percent of the uniform agent's.
regret() { # name delta bound
    local got
    got=$("$MNP" bandit "$models/$1.safetensors" --delta "$2" --trials 4 --steps 2000 --json --quiet |
        sed 's/.*"cumulative":\([^,]*\),.*/\1/') || return 1
    echo "$1, delta $2: $got %, at most $3"
    awk -v got="$got" -v most="$3" 'BEGIN { exit !(got == got + 0 && got <= most) }'
}

for process in mnp np; do
    for family in rbf matern periodic monotonic convex sde; do
        shipped $process-$family || continue
        for file in "$models/$process-$family.safetensors" "$models/$process-$family"-s[0-9]*.safetensors; do
            [ -e "$file" ] || continue
            name=$(basename "$file" .safetensors)
            for protocol in strict authors; do
                run "$name scores what its file says ($protocol)" agrees "$name" 200 $protocol
            done
        done
    done
done
for name in wheel-mnp-t1 wheel-np-t1 wheel-mnp-t5 wheel-np-t5 wheel-maml wheel-c-bruno; do
    shipped $name || continue
    run "$name plays the wheel of 0.5" regret $name 0.5 4
    run "$name plays the wheel of 0.9" regret $name 0.9 8
    run "$name plays the wheel of 0.99" regret $name 0.99 40
done
! shipped geofluvial-np || run "geofluvial-np loads" "$MNP" info "$models/geofluvial-np.safetensors"
check_done
