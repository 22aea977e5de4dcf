#!/usr/bin/env bash
# test_tables.sh: people's tables from the command line: what must be said, the split in three, what
# eval says of its curves, warnings of a run, and training that starts from another model.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

awk 'BEGIN { srand(2); print "\"\",weight,Time,Chick,Diet"
    for (c = 1; c <= 20; c++) { g = 0.05 + 0.05 * rand()
        for (t = 0; t < 22; t += 2) print ++n "," int(40 * exp(g * t)) "," t "," c "," (c > 10 ? "corn" : "oats") } }' >chicks.csv
small=(--preset tiny --batch 8 --set rff=4 --set d_z=4 --set T=2)
train() { "$MNP" train "$@" "${small[@]}"; }

says() { # TEXT FILE
    grep -qF -- "$1" "$2" || { cat "$2" && return 1; }
}

# ---- columns
the_command_is_told() {
    local line
    fails 1 "type: mnp train --data chicks.csv --out c --steps 2 --group Chick --x Time --y weight" \
        "$MNP" train --data chicks.csv --steps 2 --out c || return 1
    line=$(sed 's/.*type: mnp//' err.txt)
    # what it says works
    eval "\"\$MNP\" $line ${small[*]} --quiet" && [ -s c.safetensors ] || return 1
    # and where names and files are anything
    sed "1s/weight/chick's weight/" chicks.csv >"it's \$HOME.csv" &&
        fails 1 "--y 'chick'\\''s weight'" "$MNP" train --data "it's \$HOME.csv" --steps 2 --out d || return 1
    line=$(sed 's/.*type: mnp//' err.txt)
    eval "\"\$MNP\" $line ${small[*]} --quiet" && [ -s d.safetensors ]
}
group_is_function_column() {
    train --data chicks.csv --group Chick --y weight --steps 3 --quiet --out g &&
        train --data chicks.csv --function-column Chick --y weight --steps 3 --quiet --out f &&
        cmp g.safetensors f.safetensors &&
        fails 2 "--function-column is the older name of --group" \
            "$MNP" train --data chicks.csv --function-column Chick --group Chick --out h
}
few_curves_are_tiny() {
    local table=(--data chicks.csv --group Chick --x Time --y weight --steps 1 --batch 2)
    "$MNP" train "${table[@]}" --out unsaid >out.txt 2>err.txt && says "preset tiny: " <(cat out.txt err.txt) &&
        says "valid (log-density of held-out points) higher" <(cat out.txt err.txt) &&
        "$MNP" train "${table[@]}" --preset tiny --out said >out.txt 2>err.txt &&
        ! grep -q "preset tiny: " out.txt err.txt && cmp unsaid.safetensors said.safetensors &&
        "$MNP" train "${table[@]}" --preset paper --quiet --out paper &&
        ! cmp -s paper.safetensors said.safetensors
}
the_table_is_noted() {
    "$MNP" info g.safetensors >info.txt && says '"levels":["corn","oats"]' info.txt &&
        says "12 curves to train on, 4 to choose the weights by, 4 to test on" info.txt
}
run "a table of five columns is refused with the command to type" the_command_is_told
run "--group is --function-column" group_is_function_column
run "a table of few curves takes the small preset, and says so" few_curves_are_tiny
run "the model notes what its table was" the_table_is_noted

# ---- the split
eval_scores_unseen_curves() {
    "$MNP" eval g.safetensors --draws 0 --samples 2 --json >out.txt 2>err.txt &&
        says "chicks.csv: 4 curves, which neither trained the model nor chose its weights" err.txt &&
        says '"functions":4,' out.txt || return 1
    # the same curves where the table is given, or a copy of it
    cp chicks.csv copy.csv
    "$MNP" eval g.safetensors --data copy.csv --draws 0 --samples 2 --json >out2.txt 2>/dev/null &&
        [ "$(sed 's/.*"loglik":\([^,]*\),.*/\1/' out.txt)" = "$(sed 's/.*"loglik":\([^,]*\),.*/\1/' out2.txt)" ]
}
other_tables_are_scored_whole() {
    sed 's/weight/grams/; s/corn/oats/' chicks.csv >other.csv
    "$MNP" eval g.safetensors --data other.csv --y grams --draws 0 --samples 2 --json >out.txt 2>err.txt &&
        says '"functions":20,' out.txt && says "the column grams is taken for the model's weight" err.txt
}
other_units_are_said() {
    awk -F, 'NR == 1 { print; next } { OFS = ","; $2 /= 1000; print }' chicks.csv >kilos.csv
    "$MNP" eval g.safetensors --data kilos.csv --draws 0 --samples 2 --json >out.txt 2>err.txt &&
        says "warning: weight is about" err.txt && says "times smaller than in the training curves (" err.txt &&
        says '"warnings":["weight is about' out.txt
}
without_a_test_it_is_said() {
    train --data chicks.csv --group Chick --y weight --test 0 --steps 3 --quiet --out old &&
        "$MNP" eval old.safetensors --draws 0 --samples 2 >out.txt 2>err.txt &&
        says "warning: these 4 curves chose the model's weights" err.txt &&
        "$MNP" eval old.safetensors --draws 0 --samples 2 --json --quiet | tail -n 1 >out.txt &&
        says '"warnings":["these 4 curves chose' out.txt
}
few_curves_are_warned_of() {
    awk -F, 'NR == 1 || $4 < 6' chicks.csv >few.csv
    train --data few.csv --group Chick --y weight --steps 3 --out few --json >out.txt 2>err.txt &&
        says "warning: with 5 curves no honest test is possible" err.txt &&
        says '"warnings":["with 5 curves no honest test is possible' out.txt
}
run "eval scores the curves that nothing saw" eval_scores_unseen_curves
run "another table is scored whole" other_tables_are_scored_whole
run "eval says that the units may be others" other_units_are_said
run "without a test, eval says what it scores" without_a_test_it_is_said
run "few curves are warned of" few_curves_are_warned_of

# ---- runs
overfitting_is_said() {
    awk 'BEGIN { srand(4); print "id,t,y"
        for (c = 1; c <= 12; c++) for (t = 0; t < 10; t++) print c "," t "," rand() }' >noise.csv
    "$MNP" train --data noise.csv --preset tiny --batch 8 --steps 400 --set lr=0.01 --out over --json \
        >out.txt 2>err.txt && says "verfits" err.txt && says '"warnings":["the' out.txt
}
a_diverging_run_is_said() {
    train --data chicks.csv --group Chick --x Time --y weight --steps 60 --set lr=0.5 --set warmup=20 --out div --json \
        >out.txt 2>err.txt
    says "training diverged: the last validation is" err.txt
}
a_good_run_says_nothing() {
    train --data chicks.csv --group Chick --x Time --y weight --steps 40 --out good --json >out.txt 2>/dev/null &&
        says '"warnings":[]' out.txt
}
run "overfitting is said" overfitting_is_said
run "divergence is said" a_diverging_run_is_said
run "a good run has no warning" a_good_run_says_nothing

# ---- starting from another model
init_starts_there() {
    awk 'BEGIN { srand(3); print "id,when,w"
        for (c = 1; c <= 20; c++) { g = 0.05 + 0.05 * rand()
            for (t = 0; t < 22; t += 2) printf "%d,%d,%g\n", c, 100 + 7 * t, exp(g * t) / 10 } }' >mine.csv
    "$MNP" train --init good.safetensors --data mine.csv --steps 1 --set lr=0 --out mine >out.txt 2>&1 &&
        says "good.safetensors: weights of a model of chicks.csv, step" out.txt || return 1
    # without a step the new model is better than a fresh one on curves of the same shape
    train --data mine.csv --steps 1 --set lr=0 --quiet --out fresh || return 1
    local a b
    a=$("$MNP" eval mine.safetensors --draws 0 --json 2>/dev/null | sed 's/.*"loglik":\([^,]*\),.*/\1/')
    b=$("$MNP" eval fresh.safetensors --draws 0 --json 2>/dev/null | sed 's/.*"loglik":\([^,]*\),.*/\1/')
    echo "$a $b" && awk "BEGIN { exit !($a > $b) }"
}
run "--init starts from a model's weights, in the units of the new data" init_starts_there
run "other inputs" fails 1 "the data have 3 inputs per point, the model to start from 1" \
    "$MNP" train --init good.safetensors --data chicks.csv --group Chick --x Time,Diet --y weight --out x
run "another kind" fails 2 "is a model of the kind mnp, not gp" \
    "$MNP" train --init good.safetensors --model gp --data mine.csv --out x
run "another size" fails 2 "--init and --preset exclude each other" \
    "$MNP" train --init good.safetensors --preset tiny --data mine.csv --out x
run "other weights" fails 1 "a model that starts from another one keeps its d_z: leave it out" \
    "$MNP" train --init good.safetensors --set d_z=3 --data mine.csv --out x
init_adds() {
    "$MNP" train --init good.safetensors --set attend=on --data mine.csv --steps 1 --set lr=0 --out sees >out.txt 2>&1 &&
        grep -q "good.safetensors: weights of a model of chicks.csv, step [0-9]*, with attend=on; inside" out.txt &&
        "$MNP" info sees.safetensors | grep -q 'attend=on'
}
run "--init with an option that adds to the model" init_adds

# ---- ranges
predict_warns_outside() {
    printf 'Time,weight\n0,40\n4,9000\n' >seen.csv
    "$MNP" predict good.safetensors --context seen.csv --grid 0:200:3 --samples 4 >/dev/null 2>err.txt &&
        says "warning: seen.csv:3: weight is 9000, 8708 beyond the training curves (40 to 292); 1 of 2 rows lie outside" err.txt &&
        says "warning: the grid: Time is 100, 80 beyond the training curves (0 to 20); 2 of 3 rows lie outside" err.txt
}
run "predict warns of x and y outside the training curves" predict_warns_outside
run "a spreadsheet" eval "printf 'PK\003\004' >book.xlsx; fails 1 'save the sheet as CSV' $MNP train --data book.xlsx --out x"

check_done
