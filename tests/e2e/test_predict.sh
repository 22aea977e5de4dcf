#!/usr/bin/env bash
# test_predict.sh: predict, sample and score from the command line: columns, files, errors.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

# A model of one input (a few steps are enough for what is asked here), and one of two from a CSV
# whose columns have names of their own.
"$MNP" train --data monotonic --functions 100 --preset tiny --steps 3 --seed 1 --quiet --out m ||
    exit 1
awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 12; f++) for (i = 0; i < 9; i++) {
        a = rand() * 10; b = rand() * 10; print "s" f "," a "," b "," 5 + sin(a) + b / 5 + f / 9 } }' \
    >ore.csv
"$MNP" train --data ore.csv --function-column site --x east,north --y grade --preset tiny --steps 3 \
    --quiet --out ore || exit 1
printf 'x,y\n-1,-0.5\n0,0\n1,0.7\n' >c.csv

header_is() { [ "$(head -n 1 "$1")" = "$2" ]; }
rows_are() { [ "$(($(wc -l <"$1") - 1))" = "$2" ]; }

# ---- predict
predict_columns() {
    "$MNP" predict m.safetensors --context c.csv --grid=-2:2:9 --samples 30 --out p.csv &&
        header_is p.csv x,mean,sd,q05,q25,q50,q75,q95 && rows_are p.csv 9 &&
        awk -F, 'NR > 1 { if (!($3 > 0 && $4 <= $5 && $5 <= $6 && $6 <= $7 && $7 <= $8)) exit 1 }' p.csv
}
predict_stdout() {
    "$MNP" predict m.safetensors --context c.csv --grid -2:2:9 --samples 30 >s.csv 2>note.txt &&
        cmp p.csv s.csv && grep -q 'seed 0' note.txt
}
# the printed mean and median are those of the printed draws
predict_draws() {
    "$MNP" predict m.safetensors --grid 0:1:2 --samples 3 --draws --seed 4 --out d.csv &&
        header_is d.csv x,mean,sd,q05,q25,q50,q75,q95,draw1,draw2,draw3 &&
        awk -F, 'function off(a, b) { return (a - b) ^ 2 > 1e-18 }
            NR > 1 { m = ($9 + $10 + $11) / 3; v = (($9 - m) ^ 2 + ($10 - m) ^ 2 + ($11 - m) ^ 2) / 2
                lo = $9 < $10 ? $9 : $10; lo = lo < $11 ? lo : $11
                hi = $9 > $10 ? $9 : $10; hi = hi > $11 ? hi : $11
                if (off($2, m) || off($3, sqrt(v)) || off($6, 3 * m - lo - hi)) exit 1 }' d.csv
}
predict_json() {
    "$MNP" predict m.safetensors --context c.csv --at c.csv --out j.csv --json 2>/dev/null >j.txt &&
        [[ "$(cat j.txt)" == '{"points":3,"out":"j.csv","context":3,"samples":200,"seed":0,"seconds":'* ]]
}
predict_two_inputs() {
    cut -d, -f2- ore.csv | head -n 10 >one.csv
    "$MNP" predict ore.safetensors --context one.csv --grid 0:10:3,0:10:2 --out o.csv &&
        header_is o.csv east,north,mean,sd,q05,q25,q50,q75,q95 && rows_are o.csv 6 &&
        [ "$(cut -d, -f1,2 o.csv | tr '\n' ' ')" = "east,north 0,0 0,10 5,0 5,10 10,0 10,10 " ]
}
same_for_threads() {
    "$MNP" predict m.safetensors --context c.csv --grid=-2:2:9 --threads 1 --out t1.csv &&
        "$MNP" predict m.safetensors --context c.csv --grid=-2:2:9 --threads 3 --out t3.csv &&
        cmp t1.csv t3.csv
}
# the family's inputs lie in -2 .. 2
outside_the_family() {
    printf 'x,y\n0,0\n2.5,1\n' >far.csv
    "$MNP" predict m.safetensors --context far.csv --grid=-2:3:6 --samples 3 --out f.csv 2>note.txt || return 1
    cat note.txt
    grep -qF 'warning: far.csv:3: x is 2.5, 0.5 beyond the training curves (-2 to 2)' note.txt &&
        grep -qF 'warning: the grid: x is 3, 1 beyond the training curves (-2 to 2)' note.txt || return 1
    "$MNP" predict m.safetensors --context c.csv --grid=-2:2:5 --samples 3 --out f.csv 2>note.txt && ! grep -q warning note.txt
}
run "predict: columns, ordered quantiles" predict_columns
run "predict: the same table on stdout, notes on stderr" predict_stdout
run "predict: statistics are those of the draws" predict_draws
run "predict: JSON" predict_json
run "predict: two inputs, named as in the data" predict_two_inputs
run "predict: the same for any number of threads" same_for_threads
run "predict: a warning outside the inputs of a built-in family" outside_the_family

# ---- contexts
empty_is_none() {
    printf 'x,y\n' >none.csv
    "$MNP" predict m.safetensors --context none.csv --grid=-1:1:5 --out e1.csv &&
        "$MNP" predict m.safetensors --grid=-1:1:5 --out e2.csv && cmp e1.csv e2.csv
}
columns_in_order() {
    printf 'when,who,height\n-1,a,-0.5\n0,b,0\n1,c,0.7\n' >other.csv
    "$MNP" predict m.safetensors --context other.csv --grid=-2:2:9 --samples 30 --out o.csv 2>note.txt
    cat note.txt
    cmp o.csv p.csv && grep -qF "warning: the column when is taken for the model's x" note.txt &&
        grep -qF "the column height is taken for the model's y" note.txt
}
missing_y() {
    printf 'y;x\n-0.5;-1\n;7\n0;0\nNaN;8\n0.7;1\n' >gaps.csv
    "$MNP" predict m.safetensors --context gaps.csv --grid=-2:2:9 --samples 30 --out o.csv 2>note.txt
    cat note.txt
    cmp o.csv p.csv && grep -qF 'gaps.csv: 2 of 5 rows have no y and were dropped' note.txt
}
run "a header alone is an empty context" empty_is_none
run "other names: numeric columns in order, said aloud" columns_in_order
run "rows without y are dropped, said aloud" missing_y
printf 'x,y\n1,2\n3,four\n' >bad.csv
printf 'x,y\n1,2\n,4\n' >hole.csv
printf 'a,b,c\n1,2,3\n' >wide.csv
printf '1,2\n3,4\n' >headless.csv
run "a bad number names file and line" \
    fails 1 bad.csv:3: "$MNP" predict m.safetensors --context bad.csv --grid=0:1:2
run "a missing x names file and line" \
    fails 1 hole.csv:3: "$MNP" predict m.safetensors --context hole.csv --grid=0:1:2
run "unclear columns are listed" \
    fails 1 "a, b, c" "$MNP" predict m.safetensors --context wide.csv --grid=0:1:2
run "a forgotten header is refused" \
    fails 1 headless.csv "$MNP" predict m.safetensors --context headless.csv --grid=0:1:2
run "a missing file is named" \
    fails 1 nowhere.csv "$MNP" predict m.safetensors --context nowhere.csv --grid=0:1:2

# ---- flags
run "places are needed" fails 2 "--at X.csv or --grid" "$MNP" predict m.safetensors
run "not both kinds of places" \
    fails 2 exclude "$MNP" predict m.safetensors --at c.csv --grid=0:1:2
for grid in 0:1 1:0:5 0:1:0 0:1:2:3 0:x:3 nan:1:3 0:inf:3 0:1:2,0:1:2 0:1:1e9 ''; do
    run "no grid: '$grid'" fails 2 grid "$MNP" predict m.safetensors --grid="$grid"
done
run "two inputs want two spans" fails 2 grid "$MNP" predict ore.safetensors --grid 0:1:5
run "the nearest option is named" \
    fails 2 --samples "$MNP" predict m.safetensors --grid=0:1:2 --sample 3
run "samples out of range" fails 2 samples "$MNP" predict m.safetensors --grid=0:1:2 --samples 0
run "JSON wants --out" fails 2 --out "$MNP" predict m.safetensors --grid=0:1:2 --json
run "a model that is none" fails 1 c.csv "$MNP" predict c.csv --grid=0:1:2
full_disk() {
    [ -e /dev/full ] || return 0
    fails 1 /dev/full "$MNP" predict m.safetensors --grid=0:1:2 --out /dev/full
}
run "a failed write is reported" full_disk
unharmed() {
    cp p.csv kept.csv
    ! "$MNP" predict m.safetensors --context bad.csv --grid=0:1:2 --out kept.csv && cmp p.csv kept.csv
}
run "a failed run leaves the old file" unharmed

# ---- sample
sample_long() {
    "$MNP" sample m.safetensors --context c.csv --grid=-2:2:5 -n 4 --out f.csv && header_is f.csv function,x,y &&
        rows_are f.csv 20 && [ "$(sed 1d f.csv | cut -d, -f1 | uniq -c | tr -s ' \n' ' ')" = " 5 0 5 1 5 2 5 3 " ]
}
# the functions are the same functions whatever places they are asked at
sample_coherent() {
    "$MNP" sample m.safetensors --context c.csv --grid=0:2:3 -n 4 --out g.csv &&
        awk -F, 'NR == FNR { y[$1, $2] = $3; next } FNR > 1 && ($1, $2) in y {
            n++; if (($3 - y[$1, $2]) ^ 2 > 1e-10) exit 1 } END { exit n != 12 }' f.csv g.csv
}
sample_base() {
    "$MNP" sample m.safetensors --context c.csv --grid=-2:2:5 -n 4 --base zero --out z.csv && cmp f.csv z.csv &&
        "$MNP" sample m.safetensors --context c.csv --grid=-2:2:5 -n 4 --base normal --out n.csv && ! cmp -s f.csv n.csv
}
sample_readable() { # its output is data for training
    "$MNP" train --data f.csv --preset tiny --steps 1 --quiet --out again --json | grep -q '"steps":1'
}
sample_names() {
    "$MNP" sample ore.safetensors --at ore.csv -n 2 --json --out s.csv 2>/dev/null | grep -q '"functions":2' &&
        header_is s.csv site,function,east,north,grade && rows_are s.csv 216
}
run "sample: long rows" sample_long
run "sample: functions are coherent" sample_coherent
run "sample: base zero is the default, normal differs" sample_base
run "sample: train reads what it writes" sample_readable
run "sample: columns named as in the data, JSON" sample_names
run "sample: base is one of two" \
    fails 2 "zero|normal" "$MNP" sample m.safetensors --grid=0:1:2 --base one

# ---- score
number() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"; }
score_json() {
    "$MNP" score m.safetensors --context c.csv --targets t.csv --json 2>/dev/null >s.txt || return 1
    cat s.txt
    awk -v l="$(number loglik <s.txt)" -v t="$(number total <s.txt)" -v n="$(number points <s.txt)" \
        'BEGIN { exit !(n == 2 && (l * 2 - t) ^ 2 < 1e-12) }' &&
        grep -q '"context":3,"samples":20,"seed":0' s.txt && grep -q '"loglik_prior_sampling":' s.txt
}
# a point on the curve is likelier than one far off it
score_sense() {
    printf 'x,y\n0.1,9\n' >far.csv
    printf 'x,y\n0.1,0.1\n' >near.csv
    local near far
    near=$("$MNP" score m.safetensors --context c.csv --targets near.csv --json 2>/dev/null | number total)
    far=$("$MNP" score m.safetensors --context c.csv --targets far.csv --json 2>/dev/null | number total)
    echo "near $near, far $far"
    awk -v a="$near" -v b="$far" 'BEGIN { exit !(a > b + 3) }'
}
score_text() {
    "$MNP" score m.safetensors --targets t.csv >s.txt &&
        grep -q '2 targets given 0 points' s.txt && grep -q 'seed 0' s.txt && grep -q 'per point' s.txt
}
printf 'x,y\n0.5,0.4\n-0.5,-0.2\n' >t.csv
run "score: JSON, total and per point" score_json
run "score: likely and unlikely targets" score_sense
run "score: text, empty context" score_text
run "score: targets are needed" fails 2 --targets "$MNP" score m.safetensors --context c.csv
run "score: no rows" fails 1 none.csv "$MNP" score m.safetensors --targets none.csv

# ---- a device that is asked for is used, or refused: never passed over
run "predict: kernels that the CPU has not" fails 1 "leave ':general' out" \
    "$MNP" predict m.safetensors --kernels general --grid 0:1:2
run "plot: a precision that the CPU has not" fails 1 "leave ':tf32' out" \
    "$MNP" plot m.safetensors --math tf32 --out m.svg
run "predict: an unknown device" fails 1 "did you mean cuda?" "$MNP" predict m.safetensors --device gpu --grid 0:1:2

# ---- numbers that no float can hold, or that the networks cannot
numbers() { # file value
    printf 'x,y\n0,0.1\n%s\n' "$2" >"$1"
}
numbers big_y.csv 1,1e300
numbers far_y.csv 1,-1e30
numbers big_x.csv 1e300,1
numbers away.csv 1,5000
run "a context beyond single precision" fails 1 'big_y.csv:3: column "y": "1e300" is too large' \
    "$MNP" predict m.safetensors --context big_y.csv --grid 0:1:2
run "a context that would overflow" fails 1 'far_y.csv:3: column "y": -1e30 is too far' \
    "$MNP" sample m.safetensors --context far_y.csv --grid 0:1:2
run "a place beyond single precision" fails 1 'big_x.csv:3: column "x": "1e300" is too large' \
    "$MNP" predict m.safetensors --at big_x.csv
run "targets to score" fails 1 'big_x.csv:3: column "x": "1e300" is too large' \
    "$MNP" score m.safetensors --targets big_x.csv
run "a grid beyond single precision" fails 2 "--grid: x = 1e+300 is too large" \
    "$MNP" predict m.safetensors --grid 0:1e300:3
away() {
    "$MNP" predict m.safetensors --context away.csv --grid 0:1:2 --out away_p.csv 2>note.txt &&
        grep -q 'warning: 1 of 2 observed points lie more than 100 times' note.txt && ! grep -q NA away_p.csv
}
run "far but within reach: an answer and a warning" away
# ---- which seed does what: the model's own functions, or with --data those of --seed
seeds_of() { # command, then flags: prints seed and data_seed
    "$MNP" "$1" m.safetensors --functions 3 --samples 2 "${@:2}" --json --quiet >seed.json &&
        sed -E 's/.*"seed":([0-9]+).*"data_seed":([0-9]+).*/\1 \2/' seed.json
}
seeds() {
    [ "$(seeds_of "$1")" = "0 1" ] && [ "$(seeds_of "$1" --seed 5)" = "5 1" ] &&
        [ "$(seeds_of "$1" --seed 5 --data monotonic)" = "5 5" ] && cp seed.json five.json &&
        [ "$(seeds_of "$1" --seed 1 --data monotonic)" = "1 1" ] && cp seed.json one.json &&
        [ "$(seeds_of "$1" --seed 1)" = "1 1" ] && cmp seed.json one.json && ! cmp -s seed.json five.json &&
        "$MNP" "$1" m.safetensors --functions 3 --samples 2 --seed 5 2>/dev/null | grep -q 'monotonic (data seed 1), .*seed 5'
}
run "eval: seeds of functions and draws" seeds eval
run "check: seeds of functions and draws" seeds check
check_done
