#!/usr/bin/env bash
# test_geofluvial_model.sh: does the shipped model of river images honour wells, and does its
# uncertainty behave? Five test images that it has not seen, 20 to 160 wells each.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
model=${MODEL:-$PWD/models/geofluvial.safetensors}
tmp=${TEST_TMP:-$(mktemp -d)}
if [ ! -e "$model" ]; then
    skip "the shipped model of river images" "there is no models/geofluvial.safetensors"
    check_done
    exit
fi
cd "$tmp" || exit 1
export LC_ALL=C
images=${IMAGES:-5}

# What a map says of its wells: N, wells, within 0.05, within 0.1, mean sd, and sd nearer than 2
# pixels, from 2 to 8, and farther, with their counts.
measure='
    NR == FNR { if (FNR > 1) { r[++k] = $1; c[k] = $2; v[k] = $3; at[$1 "," $2] = k } next }
    FNR == 1 { next }
    {
        if (($1 "," $2) in at) {
            off = $3 - v[at[$1 "," $2]]; if (off < 0) off = -off
            one += off <= 0.05; two += off <= 0.1
        }
        best = 1e9
        for (i = 1; i <= k; i++) { d = ($1 - r[i]) ^ 2 + ($2 - c[i]) ^ 2; if (d < best) best = d }
        b = best < 4 ? 1 : best < 64 ? 2 : 3
        sd[b] += $4; n[b]++; all += $4; pixels++
    }
    END { print k, k, one + 0, two + 0, all / pixels, sd[1], n[1], sd[2], n[2], sd[3] + 0, n[3] + 0 }'
for seed in $(seq 1001 $((1000 + images))); do
    for wells in 20 40 80 160; do
        "$MNP" gen geofluvial --images 1 --split test --seed "$seed" --wells $wells --out r.npy --quiet &&
            "$MNP" predict "$model" --context r-wells.csv --grid 128x128 --samples 50 --quiet --out w &&
            awk -F, "$measure" r-wells.csv w.csv >>measured.txt || exit 1
    done
done

honours() {
    awk '{ k += $2; one += $3; two += $4 }
        END { print "within 0.05:", one / k, " within 0.1:", two / k; exit !(one >= 0.95 * k) }' measured.txt
}
falls() {
    awk '{ s[$1] += $5; n[$1]++ }
        END { print s[20] / n[20], s[40] / n[40], s[80] / n[80], s[160] / n[160]
              exit !(s[20] / n[20] > s[40] / n[40] && s[40] / n[40] > s[80] / n[80] && s[80] / n[80] > s[160] / n[160]) }' measured.txt
}
grows() {
    awk '{ a += $6; na += $7; b += $8; nb += $9; c += $10; nc += $11 }
        END { print a / na, b / nb, c / nc; exit !(a / na < b / nb && b / nb < c / nc) }' measured.txt
}
run "the mean is within the noise (0.05) at 95 % of the wells" honours
run "the mean standard deviation falls with the number of wells" falls
run "and grows with the distance from them" grows
honours
falls
grows
check_done
