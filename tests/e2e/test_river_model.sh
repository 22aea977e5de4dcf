#!/usr/bin/env bash
# test_river_model.sh: the shipped models of river images load, say where they come from, map wells on a
# small grid, pass through them, and are surer with more of them. Three rivers that they have not seen, 32 x 32
# pixels; tests/long/test_geofluvial_model.sh asks more, at full size.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
# shellcheck source=tests/shipped.sh
. tests/shipped.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
models=$(cd "$models" && pwd)
if ! shipped geofluvial || ! shipped geofluvial-np; then
    check_done
    exit
fi
wells=$PWD/examples/data/wells.csv
cd "$tmp" || exit 1
export LC_ALL=C
model=$models/geofluvial.safetensors

says() { # what a person who finds the file wants to know
    "$MNP" info "$models/$1.safetensors" >info.txt || return 1
    cat info.txt
    for key in trained_on data_made_by score.image score.pixels; do grep -qE "^  $key +[^ ]" info.txt || return 1; done
}
# MAP WELLS: wells, those where the mean is within 0.05 of the value, mean sd
measure() {
    awk -F, 'NR == FNR { if (FNR > 1) { v[$1 "," $2] = $3; k++ } next }
        FNR > 1 { at = $1 "," $2; sd += $4; n++
            if (at in v) { off = $3 - v[at]; kept += off <= 0.05 && off >= -0.05 } }
        END { print k, kept + 0, sd / n }' "$2" "$1"
}
maps() { # 20, 40 and 80 wells of three rivers, the fewer among the more
    local seed n
    rm -f measured.txt
    for seed in 4 5 6; do
        "$MNP" gen geofluvial --images 1 --size 32 --split test --seed $seed --wells 80 --out r.npy --quiet || return 1
        for n in 20 40 80; do
            head -n $((n + 1)) r-wells.csv >w.csv &&
                "$MNP" predict "$model" --context w.csv --grid 32x32 --samples 40 --quiet --out m &&
                [ "$(wc -l <m.csv)" = 1025 ] && measure m.csv w.csv >>measured.txt || return 1
        done
    done
}
honours() { cat measured.txt && awk '{ k += $1; kept += $2 } END { exit !(k == 420 && kept == k) }' measured.txt; }
falls() {
    awk '{ sd[$1] += $3 / 3 } END { print sd[20], sd[40], sd[80]
        exit !(sd[20] > 1.1 * sd[40] && sd[40] > 1.1 * sd[80]) }' measured.txt
}
# Does the network itself look at the wells? As drawn, the mean differs less from wells that it was given than
# from those of another river.
listens() {
    "$MNP" predict "$model" --context w.csv --grid 32x32 --samples 40 --honour off --quiet --out own &&
        "$MNP" gen geofluvial --images 1 --size 32 --split test --seed 4 --wells 80 --out other.npy --quiet || return 1
    for f in w.csv other-wells.csv; do
        awk -F, 'NR == FNR { if (FNR > 1) v[$1 "," $2] = $3; next }
            FNR > 1 && ($1 "," $2) in v { off = $3 - v[$1 "," $2]; sum += off * off; n++ }
            END { print sqrt(sum / n) }' $f own.csv
    done | tee rms.txt
    [ "$(wc -l <rms.txt)" = 2 ] && awk 'NR == 1 { own = $1 } NR == 2 { exit !(own < 0.7 * $1) }' rms.txt
}
example() { # the wells of docs/user/maps.md, asked for on their own grid
    "$MNP" predict "$1" --context "$wells" --grid 128x128 --samples 4 --quiet --out e &&
        measure e.csv "$wells" | tee e.txt && awk '{ exit !($1 == 40 && $2 == 40) }' e.txt
}

run "geofluvial says how it was made and what it scores" says geofluvial
run "geofluvial-np too" says geofluvial-np
run "maps of three rivers" maps
run "the mean keeps every well within the noise (0.05)" honours
run "the standard deviation falls with the number of wells" falls
run "as drawn, the network follows its wells" listens
run "the example's wells" example "$model"
run "the example's wells, np" example "$models/geofluvial-np.safetensors"
check_done
