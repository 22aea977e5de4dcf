#!/usr/bin/env bash
# test_plot.sh: the pictures of mnp plot: that each is made, well-formed, the same every time, and
# shows what was asked for; and how bad requests end.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1
# fontconfig, under cairo, keeps its caches until the process ends: no leak of ours
echo leak:libfontconfig >lsan.txt
export LSAN_OPTIONS=suppressions=$PWD/lsan.txt:print_suppressions=0

"$MNP" train --data monotonic --functions 100 --preset tiny --steps 40 --seed 1 --set valid_every=10 \
    --set valid_functions=20 --quiet --out m || exit 1
awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 12; f++) for (i = 0; i < 9; i++) {
        a = rand() * 10; b = rand() * 10; print "s" f "," a "," b "," 5 + sin(a) + b / 5 + f / 9 } }' \
    >ore.csv
head -n 10 ore.csv >site.csv
"$MNP" train --data ore.csv --function-column site --x east,north --y grade --preset tiny --steps 3 \
    --quiet --out ore || exit 1
printf 'x,y\n-1,-0.5\n0,0\n1,0.7\n' >c.csv

# shows FILE TEXT...: the picture is well-formed (where xmllint is), free of NaN, and has the texts
shows() {
    local file=$1 text
    shift
    if command -v xmllint >/dev/null; then xmllint --noout "$file" || return 1; fi
    ! grep -qiE 'nan|inf[^o]' "$file" || return 1
    for text in "$@"; do
        grep -qF -- ">$text<" "$file" || { echo "no '$text' in $file" && return 1; }
    done
}
count() { grep -oE -- "$1" "$2" | wc -l; }

functions() {
    "$MNP" plot m.safetensors --context c.csv --grid=-2:2:40 --samples 20 --out f.svg &&
        shows f.svg "given 3 points" x y mean "draws, without noise" observed \
            "95 %" "80 %" "50 % of measurements, noise included"
}
functions_again() {
    "$MNP" plot m.safetensors --context c.csv --grid=-2:2:40 --samples 20 --threads 1 --out g.svg &&
        cmp f.svg g.svg
}
functions_seed() {
    "$MNP" plot m.safetensors --context c.csv --grid=-2:2:40 --samples 20 --seed 5 --out g.svg |
        grep -q 'seed 5' && ! cmp -s f.svg g.svg
}
# the range of the data: monotonic functions live on -2 .. 2
prior_default_grid() {
    "$MNP" plot m.safetensors --prior --samples 10 --out p.svg && shows p.svg prior −2.0 2.0 mean
}
panels() {
    printf 'x,y\n0,0.1\n' >one.csv
    "$MNP" plot m.safetensors --prior --context one.csv,c.csv --samples 10 --title "More & more" \
        --out s.svg && shows s.svg prior "given 1 point" "given 3 points" "More &amp; more"
}
# as many observed points in the picture as in the file, and one more in the legend
draws_points() { [ "$(count '<circle' f.svg)" = 4 ]; }
chain() {
    "$MNP" plot m.safetensors --chain --context c.csv --grid=-2:2:40 --out c.svg &&
        shows c.svg "t = 0" "t = 1" "t = 2" "t = 3" x y && [ "$(count '>t = ' c.svg)" = 4 ]
}
maps() {
    "$MNP" plot ore.safetensors --context site.csv --prior --grid 0:10:8,0:10:6 --samples 4 --out o.svg &&
        shows o.svg "mean, prior" "sd, prior" "draw, given 9 points" east north
}
log_curves() {
    "$MNP" plot --log m.log.csv --out l.svg && shows l.svg loss "KL divergence" "validation score" step best
}
log_without_scores() {
    sed 1q m.log.csv >short.csv
    printf '%s,NA,NA,NA\n' 1,2,0.1,1,NA,0.001,1 2,1.5,0.2,1,NA,0.001,2 >>short.csv
    "$MNP" plot --log short.csv --out l.svg && shows l.svg loss && ! grep -q 'validation score' l.svg
}
json() {
    [ "$("$MNP" plot --log m.log.csv --out l.svg --json 2>/dev/null)" = '{"out":"l.svg","seed":0}' ]
}
beside() { # the first panel is the picture without the others; another model has its own
    "$MNP" train --data monotonic --functions 20 --model gp --steps 2 --quiet --out gp.safetensors &&
        "$MNP" plot m.safetensors --context c.csv --grid=-2:2:9 --samples 4 --gradients 5 --condition network \
            --beside exact,gp.safetensors --out b.svg --json >b.json &&
        shows b.svg network exact gp x y && [ "$(count '>given ' b.svg)" = 0 ] &&
        grep -o '"condition":"[a-z]*"' b.json | tr '\n' ' ' | grep -q '"network".*"exact".*"network"'
}
beside_noted() { # the first panel is called what the model notes, by which it is drawn
    local old new
    old=$(LC_ALL=C grep -aoE '"best_valid":"[^"]*"' m.safetensors)
    new=$(printf '"condition":%*s"network"' $((${#old} - 21)) '') # as long as the other note
    LC_ALL=C sed "s/$old/$new/" m.safetensors >noted.safetensors
    "$MNP" plot noted.safetensors --context c.csv --grid=-2:2:9 --samples 4 --gradients 5 --beside exact --out b.svg &&
        shows b.svg network exact && ! grep -q '>refine<' b.svg
}
# curves of a table: dates along the axis, a category, a covariate, two of the curves asked about
awk 'BEGIN { srand(2); print "site,date,soil,temp,yield"
    split("clay sand", soil); for (f = 1; f <= 12; f++) { t = 10 + int(10 * rand()); for (i = 1; i <= 6; i++)
        printf "s%02d,2024-%02d-%02d,%s,%d,%.3f\n", f, i, 1 + f, soil[1 + f % 2], t, t / 5 + i * (1 + f % 2) + rand() } }' >sites.csv
"$MNP" train --data sites.csv --group site --x date,soil,temp --y yield --model lmm --quiet --out sites || exit 1
awk -F, 'NR == 1 || (($1 == "s03" || $1 == "s08") && $2 < "2024-03")' sites.csv >first.csv
awk 'BEGIN { print "plant,day,cm"; for (f = 1; f <= 12; f++) for (i = 0; i < 5; i++)
    print "p" f "," i * 2 "," f + i + (f * i * 7 % 5) / 10 }' >plants.csv
"$MNP" train --data plants.csv --model lmm --quiet --out plants || exit 1

sites() { # 2 observed and 4 held-out points in each of two panels, and one of each in the legend
    "$MNP" plot sites.safetensors --context first.csv --truth sites.csv --samples 20 --grid 2024-01-01:2024-07-01:30 \
        --xlabel "sown in" --ylabel "t & ha" --out d.svg 2>note.txt &&
        shows d.svg s03 s08 "sown in" "t &amp; ha" "Jan 2024" "held out" "training curves" "outside the training data" &&
        [ "$(count '<circle' d.svg)" = 14 ] && [ "$(count '<circle[^>]*fill="#ffffff"' d.svg)" = 9 ] &&
        grep -q "10 curves of --truth are in no panel" note.txt && [ "$(count '>observed<' d.svg)" = 1 ]
}
at() { # no curve is given: the inputs are fixed by name
    "$MNP" plot sites.safetensors --at soil=sand,temp=15 --samples 10 --grid 2024-02-01:2024-05-01:9 --out a.svg &&
        shows a.svg prior date yield && grep -q "> *[0-9]* Feb 2024<\|>Feb 2024<" a.svg && ! grep -q "outside the" a.svg
}
# bands are those that mnp predict has: 80 % of the values between quantiles 0.1 and 0.9, at one place
bands() {
    printf 'plant,day,cm\np3,0,3\np3,4,5.2\n' >p3.csv
    "$MNP" plot plants.safetensors --context p3.csv --bands 80 --draws 0 --curves 0 --ylim 0:20 --xlim 0:10 \
        --grid 0:10:11 --samples 50 --out p.svg && shows p.svg "80 % of measurements, noise included" || return 1
    "$MNP" sample plants.safetensors --context p3.csv --grid 8:8:1 -n 4000 --base normal --out s.csv || return 1
    awk -F, 'NR > 1 { print $NF }' s.csv | sort -g >values.txt
    local lo hi
    lo=$(sed -n 400p values.txt) hi=$(sed -n 3600p values.txt)
    # the path of the band goes from x = 0 to 10 along its lower edge, then back along the upper one; the ticks
    # at y = 0 and 20 are the ends of the axis
    awk -v lo="$lo" -v hi="$hi" '
        /^<path d="M[0-9. ]*L.*Z" fill="#0072b2"/ && !band { band = $0 }
        /^<text/ && />0<\/text>|>20<\/text>/ && /text-anchor="end"/ {
            match($0, / y="[0-9.]*/); y = substr($0, RSTART + 4, RLENGTH - 4) - 0.36 * 11
            if (/>20</) top = y; else bottom = y }
        END {
            gsub(/<path d="M|Z".*/, "", band); gsub(/L/, " ", band); split(band, v, " ")
            a = (bottom - v[2 * 9]) / (bottom - top) * 20; b = (bottom - v[2 * (22 - 8)]) / (bottom - top) * 20
            printf "band %g %g, draws %g %g\n", a, b, lo, hi; w = hi - lo
            exit !(w > 0 && (a - lo) ^ 2 < 0.01 * w * w && (b - hi) ^ 2 < 0.01 * w * w) }' p.svg
}
many() { # a panel for each of 12 curves at most; the rest is said
    awk -F, 'NR == 1 { print; next } { print; print "x" $0 }' plants.csv >more.csv
    "$MNP" plot plants.safetensors --context more.csv --samples 4 --grid 0:8:5 --out n.svg 2>note.txt &&
        [ "$(count '>p[0-9]+<' n.svg)" -ge 6 ] && grep -q "12 curves are drawn, and 12 are left out" note.txt
}
# two outputs, and a category that changes within a curve; a category that is itself called "output"
awk 'BEGIN { srand(3); print "cow,date,feed,milk,fat"; split("hay corn", feed, " ")
    for (f = 1; f <= 12; f++) { a = 20 + 5 * rand(); for (d = 1; d <= 6; d++)
        printf "k%d,2024-03-%02d,%s,%.2f,%.3f\n", f, 4 * d, feed[1 + int(2 * rand())], a + d + rand(), 400 + d + rand() } }' >cows.csv
"$MNP" train --data cows.csv --model lmm --group cow --x date,feed --y milk,fat --quiet --out cows || exit 1
awk -F, -v OFS=, 'NR == 1 { print "cow,day,output,y"; next } { print $1, NR % 6, $3, $4 }' cows.csv >named.csv
"$MNP" train --data named.csv --model lmm --group cow --x day,output --y y --quiet --out named || exit 1
outputs() { # in their own units, whether or not rows of the output are given: no axis goes below zero
    local at="--samples 10 --quiet --at feed=hay"
    awk -F, -v OFS=, 'NR == 1 || $1 == "k2" { if (NR > 1) $4 = ""; print }' cows.csv >fat.csv
    head -n 1 cows.csv >header.csv
    # shellcheck disable=SC2086
    "$MNP" plot cows.safetensors $at --out u1.svg && "$MNP" plot cows.safetensors $at,output=fat --out u2.svg &&
        "$MNP" plot cows.safetensors $at --context header.csv --out u3.svg &&
        "$MNP" plot cows.safetensors $at --prior --context fat.csv --out u4.svg &&
        shows u1.svg milk 30 && shows u2.svg fat 404 && shows u3.svg milk 30 && shows u4.svg milk k2 30 &&
        ! grep -q '>−' u1.svg u2.svg u3.svg u4.svg || return 1
    "$MNP" plot cows.safetensors --samples 4 --at feed=hay --out u5.svg 2>note.txt &&
        grep -q "note: the picture shows milk; --at output=fat shows another output" note.txt
}
category_output() { # every point of the curve is shown, as for any other category, and y has its own name
    grep -E '^cow|^k3,' named.csv >k3.csv
    "$MNP" plot named.safetensors --context k3.csv --samples 10 --out u.svg && shows u.svg k3 day y &&
        [ "$(count '<circle' u.svg)" = 7 ]
}
sampled() { # what mnp sample writes can be read again, also where the group column is called as its own
    sed '1s/plant/function/' plants.csv >function.csv
    "$MNP" train --data function.csv --group function --x day --y cm --model lmm --quiet --out function || return 1
    grep -E '^f|^p3,' function.csv >p3.csv
    "$MNP" sample function.safetensors --context p3.csv --grid 0:8:5 -n 1 --quiet --out s.csv &&
        [ "$(head -n 1 s.csv)" = function,draw,day,cm ] &&
        "$MNP" plot function.safetensors --context s.csv --samples 4 --out s.svg && shows s.svg p3 day cm
}
whole_points() { # a point on the edge of the panel is not cut: it stands outside of all clipped groups
    awk '/<g clip-path/ { inside = 1 } /^<\/g>/ { inside = 0 } /<circle/ && inside { bad = 1 } END { exit bad }' d.svg
}
run "functions given points" functions
run "curves of a table, a panel each, with dates and held-out points" sites
run "inputs fixed by name" at
run "a band is where the draws are" bands
run "more curves than panels" many
run "several outputs are in their own units" outputs
run "a category called output" category_output
run "draws of mnp sample as a context" sampled
run "points on the edge are whole" whole_points
run "an input that is not fixed" fails 2 "--at temp=VALUE" "$MNP" plot sites.safetensors --at soil=clay --out a.svg
run "a category that does not exist" fails 2 "no such value of soil" \
    "$MNP" plot sites.safetensors --at soil=cly,temp=3 --out a.svg
run "an input that does not exist" fails 2 "NAME=VALUE" "$MNP" plot sites.safetensors --at heat=3 --out a.svg
run "no such bands" fails 2 "--bands wants" "$MNP" plot m.safetensors --bands 50,120 --out a.svg
run "no such limits" fails 2 "--xlim wants lo:hi" "$MNP" plot m.safetensors --xlim 3:1 --out a.svg
run "a logarithm of nothing" fails 2 "above 0" "$MNP" plot m.safetensors --ylog --ylim 0:1 --out a.svg
run "labels are for curves" fails 2 "--xlabel is for curves" \
    "$MNP" plot ore.safetensors --xlabel a --grid 0:10:8,0:10:6 --out o.svg
run "other ways and other models beside them" beside
run "the way that the model notes beside another" beside_noted
run "--beside takes one context" fails 2 "one context" \
    "$MNP" plot m.safetensors --context c.csv --prior --beside exact --out b.svg
run "--beside a misspelt way" fails 1 "did you mean exact" \
    "$MNP" plot m.safetensors --context c.csv --beside exat --out b.svg
run "--beside a file that is not there" fails 1 "nowhere" \
    "$MNP" plot m.safetensors --context c.csv --beside nowhere.safetensors --out b.svg
run "the same bytes again, for any number of threads" functions_again
run "another seed, another picture" functions_seed
run "prior over the range of the data" prior_default_grid
run "panels for several contexts, title escaped" panels
run "every observed point is drawn" draws_points
run "the chain, a panel for each step" chain
run "maps for two inputs" maps
run "training curves" log_curves
run "training curves before the first validation" log_without_scores
run "JSON" json

# PNG and PDF, where cairo is installed
if "$MNP" plot --log m.log.csv --out l.png --quiet 2>err.txt; then
    png() { [ "$(head -c 4 l.png | tail -c 3)" = PNG ]; }
    pdf() { "$MNP" plot m.safetensors --grid=0:1:9 --samples 4 --out f.pdf && [ "$(head -c 4 f.pdf)" = %PDF ]; }
    run "PNG" png
    run "PDF" pdf
else
    run "without cairo: said so" grep -q "libcairo.so.2: apt-get install libcairo2" err.txt
fi

run "nothing to draw" fails 2 "mnp plot MODEL" "$MNP" plot --out f.svg
run "--out is needed" fails 2 "--out F.svg" "$MNP" plot m.safetensors
run "an unknown kind of picture" fails 2 .svg "$MNP" plot m.safetensors --out f.gif
run "a log takes no model" fails 2 "no model" "$MNP" plot m.safetensors --log m.log.csv --out l.svg
run "a log takes no grid" fails 2 "--grid" "$MNP" plot --log m.log.csv --grid 0:1:9 --out l.svg
run "a log that is none" fails 1 "step" "$MNP" plot --log c.csv --out l.svg
run "no chain for two inputs" \
    fails 1 "one input" "$MNP" plot ore.safetensors --chain --grid 0:1:4,0:1:4 --out o.svg
run "too few places" fails 2 "2 to" "$MNP" plot m.safetensors --grid 0:1:1 --out f.svg
run "no range of x" fails 2 "range of x" "$MNP" plot m.safetensors --grid 1:1:9 --out f.svg
run "no range of a second input" \
    fails 2 "range of north" "$MNP" plot ore.safetensors --grid 0:1:9,2:2:3 --out o.svg
run "no draws of a chain" fails 2 draws "$MNP" plot m.safetensors --chain --draws 0 --out f.svg
unharmed() {
    cp f.svg kept.svg
    ! "$MNP" plot m.safetensors --context nowhere.csv --out kept.svg && cmp f.svg kept.svg
}
run "a failed run leaves the old picture" unharmed

check_done
