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
        shows f.svg "given 3 points" x y mean draws observed "50 %" "90 %"
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
    "$MNP" plot ore.safetensors --context ore.csv --prior --grid 0:10:8,0:10:6 --samples 4 --out o.svg &&
        shows o.svg "mean, prior" "sd, prior" "draw, given 108 points" east north
}
log_curves() {
    "$MNP" plot --log m.log.csv --out l.svg && shows l.svg loss "KL divergence" "validation score" step best
}
log_without_scores() {
    sed 1q m.log.csv >short.csv
    printf '1,2,0.1,1,NA,0.001,1\n2,1.5,0.2,1,NA,0.001,2\n' >>short.csv
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
run "functions given points" functions
run "other ways and other models beside them" beside
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
