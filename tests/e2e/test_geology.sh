#!/usr/bin/env bash
# test_geology.sh: from wells to maps: mnp gen --wells, mnp predict and mnp plot --grid ROWSxCOLS,
# and a small mnp repro table3 that is stopped and goes on.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1
export LC_ALL=C
# fontconfig, under cairo, keeps its caches until the process ends: no leak of ours
echo leak:libfontconfig >lsan.txt
export LSAN_OPTIONS=suppressions=$PWD/lsan.txt:print_suppressions=0

rivers=geofluvial:size=16,nit=40
"$MNP" train --data $rivers --functions 12 --preset image-small --steps 3 --batch 2 \
    --set valid_functions=2 --seed 1 --quiet --out m || exit 1
"$MNP" gen geofluvial --set nit=40 --images 12 --size 16 --seed 3 --wells 9 --out r.npy --quiet || exit 1
awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 6; f++) for (i = 0; i < 9; i++) {
        a = rand() * 10; b = rand() * 10; print "s" f "," a "," b "," 5 + sin(a) + b / 5 + f / 9 } }' \
    >ore.csv
"$MNP" train --data ore.csv --function-column site --x east,north --y grade --preset tiny --steps 2 \
    --quiet --out ore || exit 1

shape() { head -c 128 "$1" | grep -aqF -- "$2"; }
png() { [ "$(head -c 4 "$1" | tail -c 3)" = PNG ]; }
map() { "$MNP" predict m.safetensors --context r-wells.csv --grid 16x16 --samples 10 "$@"; }

# ---- wells
wells() {
    [ "$(head -n 1 r-wells.csv)" = row,col,value ] && [ "$(wc -l <r-wells.csv)" = 10 ] &&
        awk -F, 'NR > 1 && ($1 < 0 || $1 > 15 || $2 < 0 || $2 > 15 || $3 < -1 || $3 > 1) { exit 1 }' r-wells.csv
}
run "wells of an image" wells
run "wells need values" fails 2 "sdf" "$MNP" gen geofluvial --images 1 --wells 3 --out folder

# ---- maps
columns() {
    map --out w && [ "$(head -n 1 w.csv)" = row,col,mean,sd,p_channel ] &&
        [ "$(wc -l <w.csv)" = 257 ] && [ "$(tail -n 1 w.csv | cut -d, -f1,2)" = 15,15 ] &&
        awk -F, 'NR > 1 && !($4 > 0 && $5 >= 0 && $5 <= 1) { exit 1 }' w.csv
}
arrays() {
    for f in mean sd channel; do shape w-$f.npy "(16, 16)" && png w-$f.png || return 1; done
    shape w-draws.npy "(10, 16, 16)" && png w-draws.png
}
same_for_threads() { map --out t --threads 3 && cmp w.csv t.csv && cmp w-draws.npy t-draws.npy; }
stdout_is_the_table() { map 2>/dev/null >s.csv && cmp s.csv w.csv; }
# a finer grid of the same places: pixels (0,0) and (15,15) are the corners of any grid
grids_agree() {
    printf 'row,col,value\n0,0,-0.9\n15,15,0.8\n' >a-well.csv
    printf 'row,col,value\n0,0,-0.9\n30,30,0.8\n' >b-well.csv
    "$MNP" predict m.safetensors --context a-well.csv --grid 16x16 --samples 4 --out a &&
        "$MNP" predict m.safetensors --context b-well.csv --grid 31x31 --samples 4 --out b &&
        [ "$(sed -n 2p a.csv)" = "$(sed -n 2p b.csv)" ] &&
        [ "$(tail -n 1 a.csv | cut -d, -f3-)" = "$(tail -n 1 b.csv | cut -d, -f3-)" ]
}
json() {
    map --out j.csv --json 2>/dev/null | grep -q '^{"rows":16,"cols":16,"out":"j.csv","context":9,"samples":10,"seed":0,' &&
        cmp j.csv w.csv
}
other_inputs() {
    "$MNP" predict ore.safetensors --context ore.csv --group '' --grid 4x5 --samples 5 --out o &&
        [ "$(head -n 1 o.csv)" = east,north,mean,sd,p_below ] && [ "$(wc -l <o.csv)" = 21 ] &&
        shape o-below.npy "(4, 5)"
}
run "a map: columns" columns
run "a map: arrays and pictures" arrays
run "a map: the same for any number of threads" same_for_threads
run "a map: the table alone on stdout" stdout_is_the_table
run "a map: grids of one image agree" grids_agree
run "a map: JSON, and .csv in --out" json
run "a map of other inputs" other_inputs
printf 'row,col,value\n3,16,0.5\n' >out.csv
run "a well outside" fails 1 "outside the 16 x 16 grid" "$MNP" predict m.safetensors --context out.csv --grid 16x16 --out x
printf "row,col,value\n3,4,1e30\n" >huge.csv
run "a well that no network can take" fails 1 "huge.csv:2: column \"value\": 1e30 is too far" \
    "$MNP" predict m.safetensors --context huge.csv --grid 16x16 --out x
run "nothing was written" test ! -e x.csv
run "a bad grid" fails 2 "ROWSxCOLS" "$MNP" predict m.safetensors --grid 1x16 --out x
run "no map of one input" fails 2 "two inputs" bash -c "'$MNP' train --data monotonic --functions 5 --preset tiny --steps 1 --quiet --out f >/dev/null 2>&1; '$MNP' predict f.safetensors --grid 4x4 --out x"

# ---- wells that are honoured
map --honour off --out off || exit 1
map --honour 5 --out five || exit 1
# How many wells the mean of a map ($1.csv) keeps within 0.05, of how many.
kept() {
    awk -F, 'NR == FNR { if (FNR > 1) v[$1 "," $2] = $3; next }
        FNR > 1 && ($1 "," $2) in v { off = $3 - v[$1 "," $2]; all++; in_noise += off * off <= 0.0025 }
        END { print in_noise + 0, all }' r-wells.csv "$1.csv"
}
passes_through() { [ "$(kept w)" = "9 9" ] && [ "$(kept five)" = "9 9" ] && [ "$(kept off)" != "9 9" ]; }
# Rows of the map within ($2 = 1) or beyond the distance $1 of all wells, as text.
rows_by_distance() {
    awk -F, -v range="$1" -v within="$2" 'NR == FNR { if (FNR > 1) { r[++k] = $1; c[k] = $2 } next }
        FNR > 1 { near = 0
            for (i = 1; i <= k; i++) near += ($1 - r[i]) ^ 2 + ($2 - c[i]) ^ 2 < range ^ 2 - 1e-6
            if ((near > 0) == within) print }' r-wells.csv "$3.csv"
}
untouched_far_away() {
    cmp <(rows_by_distance 1.5 0 off) <(rows_by_distance 1.5 0 w) &&
        cmp <(rows_by_distance 5 0 off) <(rows_by_distance 5 0 five) &&
        [ "$(rows_by_distance 5 0 five | wc -l)" -gt 5 ] &&
        ! cmp -s <(rows_by_distance 5 1 off) <(rows_by_distance 5 1 five)
}
surer_at_wells() {
    awk -F, -v far="$(rows_by_distance 5 0 five | awk -F, '{ s += $4 } END { print s / NR }')" \
        'NR == FNR { if (FNR > 1) w[$1 "," $2] = 1; next }
        FNR > 1 && ($1 "," $2) in w && $4 > far / 2 { exit 1 }' r-wells.csv five.csv
}
in_any_order() {
    (head -n 1 r-wells.csv && tail -n +2 r-wells.csv && sed -n 2p r-wells.csv) >twice-wells.csv # one well twice
    "$MNP" predict m.safetensors --context twice-wells.csv --grid 16x16 --samples 10 --out twice --quiet &&
        [ "$(kept twice)" = "9 9" ]
}
nothing_to_honour() {
    head -n 1 r-wells.csv >no-wells.csv
    "$MNP" predict m.safetensors --context no-wells.csv --grid 16x16 --samples 3 --out none --json 2>/dev/null |
        grep -q '"honoured":0,' &&
        "$MNP" predict m.safetensors --grid 16x16 --samples 3 --honour off --out prior && cmp none.csv prior.csv
}
one_well() {
    head -n 2 r-wells.csv >one.csv
    "$MNP" predict m.safetensors --context one.csv --grid 16x16 --samples 3 --out alone --json 2>/dev/null |
        grep -q '"honoured":1,'
}
off_for_other_inputs() {
    "$MNP" predict ore.safetensors --context ore.csv --group '' --grid 4x5 --samples 5 --honour off --out o2 && cmp o.csv o2.csv &&
        "$MNP" predict ore.safetensors --context ore.csv --group '' --grid 4x5 --samples 5 --honour on --out o2 && ! cmp -s o.csv o2.csv
}
run "the mean keeps every well" passes_through
run "beyond the range nothing changes" untouched_far_away
run "at wells the sd is below half of that far away" surer_at_wells
run "a well twice" in_any_order
run "no wells" nothing_to_honour
run "one well" one_well
run "other inputs only if asked" off_for_other_inputs
run "a range that is none" fails 2 "on, off or a range" map --honour maybe --out x
run "a range of nothing" fails 2 "on, off or a range" map --honour 0 --out x
run "only maps honour" fails 2 "for maps" "$MNP" predict m.safetensors --grid 0:1:3,0:1:3 --honour on --out x
run "nothing was written" test ! -e x.csv

# ---- wells in easting and northing: pixels of 50 m, the first at the top left
extent=400000,400750,7000000,7000750
awk -F, 'NR == 1 { print "well,northing,easting,grade"; next }
    { printf "w%d,%d,%d,%s\n", NR, 7000000 + 50 * (15 - $1), 400000 + 50 * $2, $3 }' r-wells.csv >en-wells.csv
metres() { "$MNP" predict m.safetensors --context en-wells.csv --grid 16x16 --samples 10 --extent $extent "$@"; }
the_same_map() { # row by row, at the places that belong to the pixels
    metres --x easting,northing --y grade --out en && [ "$(head -n 1 en.csv)" = easting,northing,mean,sd,p_channel ] &&
        paste -d, w.csv en.csv | awk -F, 'function off(a, b) { return (a - b) ^ 2 > 1e-8 }
            NR > 1 && ($6 != 400000 + 50 * $2 || $7 != 7000000 + 50 * (15 - $1) || off($3, $8) || off($4, $9)) { print; exit 1 }'
}
# Each well at its own place keeps its value there; a map that is mirrored or turned does not.
each_at_its_place() {
    kept_at() { awk -F, -v e="$1" -v n="$2" 'NR == FNR { if (FNR > 1) v[$3 "," $2] = $4; next }
        FNR > 1 && ($e "," $n) in v { k += ($3 - v[$e "," $n]) ^ 2 <= 0.0025 } END { print k + 0 }' en-wells.csv en.csv; }
    [ "$(kept_at 1 2)" = 9 ] || return 1
    awk -F, 'NR == 1 { print; next } { print $1 "," 14000750 - $2 "," $3 "," $4 "," $5 }' en.csv >mirrored.csv &&
        mv mirrored.csv en.csv && [ "$(kept_at 1 2)" -lt 9 ]
}
names_are_known() { metres --y grade --out usual && cut -d, -f3- usual.csv | cmp - <(cut -d, -f3- w.csv) ||
    paste -d, w.csv usual.csv | awk -F, 'NR > 1 && ($3 - $8) ^ 2 > 1e-8 { exit 1 }'; }
run "wells in metres make the same map, in metres" the_same_map
run "a well comes back at its place, not at its mirror image" each_at_its_place
run "easting and northing are known by name" names_are_known
run "the map's range is asked for" fails 1 "--x easting,northing --extent x0,x1,y0,y1" \
    "$MNP" predict m.safetensors --context en-wells.csv --grid 16x16 --out x
run "and with columns too" fails 2 "needs --extent" \
    "$MNP" predict m.safetensors --context en-wells.csv --grid 16x16 --x easting,northing --out x
run "exchanged columns" fails 1 "are the two columns exchanged?" metres --x northing,easting --y grade --out x
run "south is not above north" fails 2 "y0 < y1" \
    "$MNP" predict m.safetensors --context en-wells.csv --grid 16x16 --extent 400000,400750,7000750,7000000 --out x
run "a column that is not there" fails 1 "no columns 'e' and 'nn'" metres --x e,nn --out x
run "which column has the values" fails 1 "--y C" metres --x easting,northing --out x
run "a range on curves" fails 2 "for maps" "$MNP" predict m.safetensors --grid 0:1:3,0:1:3 --extent $extent --out x

# ---- codes that mean something else
awk -F, 'NR == 1 { print; next } { print $1 "," $2 "," ($2 % 2) }' r-wells.csv >codes-wells.csv
awk -F, 'NR == 1 { print; next } { print $1 "," $2 "," ($2 % 2 ? -1 : 1) }' r-wells.csv >signs-wells.csv
awk -F, 'NR == 1 { print; next } { print $1 "," $2 "," ($2 % 2 ? "sand" : "shale") }' r-wells.csv >words-wells.csv
mapped() { "$MNP" predict m.safetensors --grid 16x16 --samples 3 --quiet --out "$1" --context "${@:2}"; }
never_reversed() {
    fails 1 "the codes 0 and 1; this model takes values below 0 for river and above 0 for land, from -1 to 1; say which is which: --codes 0=land,1=river" \
        mapped x codes-wells.csv &&
        mapped signs signs-wells.csv && mapped coded codes-wells.csv --codes 0=land,1=river && cmp coded.csv signs.csv &&
        mapped facies words-wells.csv --codes sand=-1,shale=1 && cmp facies.csv signs.csv
}
all_ones_are_doubted() {
    printf 'row,col,value\n3,4,1\n5,6,1\n' >ones.csv
    "$MNP" predict m.safetensors --context ones.csv --grid 16x16 --samples 2 --out land 2>err.txt &&
        grep -q "all values are 1, which this model takes for land" err.txt
}
run "0 and 1 are asked about, never reversed" never_reversed
run "wells of one code are doubted" all_ones_are_doubted
run "a code that was not told" fails 1 "is none of --codes 7=land" mapped x codes-wells.csv --codes 7=land
run "codes that are none" fails 2 "A=V,B=W" mapped x codes-wells.csv --codes river

# ---- images of something else than rivers
"$MNP" gen geofluvial --set nit=40 --images 12 --size 16 --seed 3 --value gray --out gray.npy --quiet || exit 1
"$MNP" train --data images:gray.npy --preset image-small --steps 3 --batch 2 --set valid_functions=2 --quiet --out g || exit 1
no_river_words() {
    printf 'row,col,value\n3,4,120\n5,6,17\n' >grey.csv
    "$MNP" predict g.safetensors --context grey.csv --grid 16x16 --samples 5 --out g --json >out.txt 2>err.txt &&
        [ "$(head -n 1 g.csv)" = row,col,mean,sd,p_below ] && [ -s g-below.npy ] && [ ! -e g-channel.npy ] &&
        grep -q '"threshold":84.5' out.txt && ! grep -qi "channel\|river" out.txt err.txt &&
        "$MNP" plot g.safetensors --context grey.csv --grid 16x16 --samples 5 --out g.svg --quiet &&
        grep -q '>150<' g.svg && ! grep -q '>-1<' g.svg
}
own_threshold() {
    "$MNP" predict g.safetensors --grid 4x4 --samples 5 --threshold 1e9 --out h --quiet &&
        awk -F, 'NR > 1 && $5 != 1 { exit 1 }' h.csv
}
run "other images get no river words" no_river_words
run "a threshold of one's own" own_threshold
run "two codes of another scale" fails 1 "--codes 0=0,1=169" "$MNP" predict g.safetensors --context codes-wells.csv --grid 16x16 --out x
run "nothing was written" test ! -e x.csv

# ---- tables of two inputs: the first to the right, the second upwards
north_is_up() {
    "$MNP" predict ore.safetensors --context ore.csv --group '' --grid 4x5 --extent 0,8,2,8 --samples 5 --out up --quiet &&
        [ "$(sed -n 2p up.csv | cut -d, -f1,2)" = 0,8 ] && [ "$(sed -n 3p up.csv | cut -d, -f1,2)" = 2,8 ] &&
        [ "$(tail -n 1 up.csv | cut -d, -f1,2)" = 8,2 ] || return 1
    # the same places one by one
    (echo east,north && tail -n +2 up.csv | cut -d, -f1,2) >at.csv
    "$MNP" predict ore.safetensors --context ore.csv --group '' --at at.csv --condition network --samples 400 --out one.csv --quiet &&
        "$MNP" predict ore.safetensors --context ore.csv --group '' --grid 4x5 --extent 0,8,2,8 --samples 400 --out up --quiet &&
        paste -d, one.csv up.csv | awk -F, 'NR > 1 && ($1 != $10 || $2 != $11 || ($3 - $12) ^ 2 > (0.3 * $4) ^ 2) { print; exit 1 }'
}
other_names() {
    sed '1s/.*/site,grade_pct,N,E/' <(awk -F, '{ print $1 "," $4 "," $3 "," $2 }' ore.csv) >renamed.csv
    "$MNP" predict ore.safetensors --context renamed.csv --x E,N --y grade_pct --grid 4x5 --samples 5 --out r2 --quiet &&
        [ "$(head -n 1 r2.csv)" = E,N,mean,sd,p_below ] && cmp <(tail -n +2 r2.csv) <(tail -n +2 o.csv)
}
run "a table's map has north up" north_is_up
run "columns of other names and order" other_names

# ---- pictures
"$MNP" gen geofluvial --set nit=40 --images 1 --size 16 --seed 3 --wells 3 --out few.npy --quiet
panel() {
    "$MNP" plot m.safetensors --context few-wells.csv,r-wells.csv --grid 16x16 --truth r.npy --samples 5 \
        --out p.svg && grep -q 'given 3 points' p.svg && grep -q 'given 9 points' p.svg && grep -q truth p.svg
}
sheet() { "$MNP" plot m.safetensors --context r-wells.csv --grid 16x16 --sheet --draws 6 --out s.svg && grep -q '<path' s.svg; }
run "a panel" panel
run "a sheet" sheet
honoured_or_not() {
    "$MNP" plot m.safetensors --context r-wells.csv --grid 16x16 --samples 5 --out on.svg &&
        "$MNP" plot m.safetensors --context r-wells.csv --grid 16x16 --samples 5 --honour off --out off.svg &&
        ! cmp -s on.svg off.svg
}
run "wells honoured in pictures, or not" honoured_or_not
run "pictures of functions do not" fails 2 ROWSxCOLS "$MNP" plot m.safetensors --honour on --out x.svg
run "a truth of another size" fails 1 "16 x 8" "$MNP" plot m.safetensors --context r-wells.csv --grid 16x8 --truth r.npy --out x.svg
run "a sheet needs rows and columns" fails 2 ROWSxCOLS "$MNP" plot m.safetensors --sheet --out x.svg

# ---- table 3
table3() { "$MNP" repro table3 --quick --images r.npy --functions 2 --samples 2 --steps 2 --batch 2 --quiet "$@"; }
table() {
    table3 --out t3 && grep -q '^| MNP | .* |$' t3/table3.md && grep -q 'paper (quoted)' t3/table3.md &&
        [ "$(grep -c '"loglik"' t3/table3.json)" = 112 ] && ! grep -q '"loglik": null' t3/table3.json &&
        grep -q '^| MNP, as drawn | ' t3/table3.md && grep -q '<svg' t3/panel-mnp.svg && grep -q '<svg' t3/draws-kriging.svg
}
goes_on() {
    cp t3/table3.md first.md && rm t3/cells/16-kriging-40-*.json t3/table3.md && table3 --out t3 --threads 3 &&
        cmp first.md t3/table3.md
}
run "table 3" table
run "table 3 goes on where it was, on any number of threads" goes_on
run "a flag of another table" fails 2 "not for table3" table3 --seeds 3 --out t3
check_done
