#!/usr/bin/env bash
# test_groups.sh: many curves in one table from the command line: predict, sample and score by the
# group column, columns of the result, what is said and refused, and the note on conditioning.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

awk 'BEGIN { srand(2); print "weight,Time,Chick,Diet"
    for (c = 1; c <= 20; c++) { g = 0.05 + 0.05 * rand()
        for (t = 0; t < 22; t += 2) print int(40 * exp(g * t) + 6 * rand()) "," t ",c" c "," (c > 10 ? "corn" : "oats") } }' >chicks.csv
"$MNP" train --data chicks.csv --model lmm --group Chick --x Time,Diet --y weight --quiet --out l || exit 1
"$MNP" train --data monotonic --functions 100 --preset tiny --steps 3 --seed 1 --quiet --out m || exit 1
printf 'Chick,Time,weight,Diet\nc1,0,40,corn\nc1,2,50,\nc2,0,42,oats\nc9,0,41,oats\n' >c.csv
printf 'Time,note,Chick\n20,"a, b",c2\n10,u,c1\n10,v,c2\n12,w,c1\n' >a.csv

says() { # TEXT FILE
    grep -qF -- "$1" "$2" || { cat "$2" && return 1; }
}
predict() { "$MNP" predict l.safetensors "$@" --samples 20; }

# ---- columns and rows
rows_in_their_order() {
    predict --context c.csv --at a.csv --quantiles 0.025,0.5,0.975 >p.csv 2>err.txt &&
        [ "$(head -n 1 p.csv)" = Chick,Time,note,mean,sd,q0.025,q0.5,q0.975 ] &&
        [ "$(cut -d, -f1,2 p.csv | tr '\n' ' ')" = "Chick,Time c2,20 c1,10 c2,10 c1,12 " ] &&
        says 'c2,20,"a, b",' p.csv && says "warning: 1 of the 3 curves of c.csv is not asked about: c9" err.txt
}
alone_as_together() {
    for c in c1 c2; do
        awk -F, -v c=$c 'NR == 1 || $1 == c' c.csv >c_1.csv
        awk -v c=",$c$" 'NR == 1 || $0 ~ c' a.csv >a_1.csv
        predict --context c_1.csv --at a_1.csv --quantiles 0.025,0.5,0.975 --quiet --out "p_$c.csv" || return 1
    done
    grep ^c1 p.csv >p1 && grep ^c2 p.csv >p2 && sed 1d p_c1.csv | cmp - p1 && sed 1d p_c2.csv | cmp - p2
}
a_grid_for_every_curve() {
    predict --context c.csv --grid 0:20:3 --draws >g.csv 2>/dev/null &&
        [ "$(head -n 1 g.csv | cut -d, -f1-9)" = Chick,Time,mean,sd,q05,q25,q50,q75,q95 ] &&
        [ "$(head -n 1 g.csv | cut -d, -f10,29)" = draw1,draw20 ] &&
        [ "$(sed 1d g.csv | cut -d, -f1,2 | tr '\n' ' ')" = "c1,0 c1,10 c1,20 c2,0 c2,10 c2,20 c9,0 c9,10 c9,20 " ]
}
the_population() {
    printf 'Chick,Time,Diet\nc1,10,\nnew,10,corn\n' >n.csv
    predict --context c.csv --at n.csv --out n_p.csv --json >j.txt 2>err.txt &&
        says "warning: 1 of the 2 curves of n.csv has no points in the context and gets the population: new" err.txt &&
        says '"groups":[{"group":"c1","context":2,"rows":1},{"group":"new","context":0,"rows":1}]' j.txt &&
        says '"rows":2' j.txt && says '"warnings":["1 of the 2 curves' j.txt || return 1
    # of which less is known
    awk -F, '$1 == "c1" { own = $5 } $1 == "new" { population = $5 } END { exit !(population > own) }' n_p.csv
}
a_clash_of_names() {
    printf 'Chick,Time,mean\nc1,10,3\n' >clash.csv
    predict --context c.csv --at clash.csv --out k.csv 2>err.txt &&
        says "the column mean of the places is left out" err.txt && [ "$(head -n 1 k.csv | cut -d, -f1-4)" = Chick,Time,mean,sd ]
}
samples_of_curves() {
    "$MNP" sample l.safetensors --context c.csv --grid 0:20:2 -n 3 --out s.csv --quiet &&
        [ "$(head -n 1 s.csv)" = Chick,function,Time,weight ] && [ "$(wc -l <s.csv)" = 19 ] &&
        "$MNP" train --data s.csv --group Chick,function --x Time --y weight --model lmm --quiet --out again
}
run "the result has the group and the rows of --at in their order" rows_in_their_order
run "a curve's answer does not depend on the others" alone_as_together
run "a grid is asked of every curve" a_grid_for_every_curve
run "a curve without points gets the population; JSON" the_population
run "a column that the forecast has too is left out" a_clash_of_names
run "sample: the group, then the function" samples_of_curves

# ---- the same bytes as by hand
by_group_flag() {
    printf 'id,x,y\na,0,0.1\nb,1,0.5\nb,-1,-0.4\n' >ids.csv
    fails 1 "type: mnp predict m.safetensors --context ids.csv --grid 0:1:2 --group id" \
        "$MNP" predict m.safetensors --context ids.csv --grid 0:1:2 || return 1
    "$MNP" predict m.safetensors --context ids.csv --grid 0:1:2 --group id --samples 9 --quiet >i.csv &&
        [ "$(cut -d, -f1,2 i.csv | tr '\n' ' ')" = "id,x a,0 a,1 b,0 b,1 " ] || return 1
    # all rows for one curve, as a file without the column
    cut -d, -f2- ids.csv >none.csv
    "$MNP" predict m.safetensors --context ids.csv --grid 0:1:2 --group '' --samples 9 --quiet >o1.csv &&
        "$MNP" predict m.safetensors --context none.csv --grid 0:1:2 --samples 9 --quiet >o2.csv && cmp o1.csv o2.csv
}
run "several curves for a model without a group column: the command to type" by_group_flag

# ---- dates and several outputs come back as they went in
dates_and_outputs() {
    awk 'BEGIN { srand(3); print "cow;date;milk;fat"
        for (c = 1; c <= 12; c++) { a = 20 + 5 * rand(); for (d = 1; d <= 6; d++) {
            s = sprintf("k%d;2024-03-%02d;%.2f;%.3f", c, 4 * d, a + d + rand(), 4 + 0.1 * d + rand() / 5)
            gsub(/\./, ",", s); print s } } }' >cows.csv
    "$MNP" train --data cows.csv --model lmm --group cow --x date --y milk,fat --quiet --out cow || return 1
    head -n 3 cows.csv >seen.csv
    printf 'cow;date\nk1;2024-03-25\n' >at.csv
    "$MNP" predict cow.safetensors --context seen.csv --at at.csv --samples 20 --quiet >d.csv && cat d.csv &&
        [ "$(cut -d, -f1-3 d.csv | tr '\n' ' ')" = "cow,date,output k1,2024-03-25,milk k1,2024-03-25,fat " ] &&
        awk -F, '$3 == "milk" { m = $4 } $3 == "fat" { f = $4 } END { exit !(m > 20 && m < 40 && f > 4 && f < 6) }' d.csv &&
        "$MNP" predict cow.safetensors --context seen.csv --grid 2024-03-01:2024-03-03:3 --samples 2 --quiet |
        cut -d, -f2 | sort -u | tr '\n' ' ' | grep -qx '2024-03-01 2024-03-02 2024-03-03 date '
}
run "dates, decimal commas and outputs" dates_and_outputs

# ---- scores of curves
number() { # KEY: its first number
    sed 's/.*"'"$1"'":\([^,}]*\).*/\1/' | head -n 1
}
score() { "$MNP" score l.safetensors "$@" --json --quiet; }
scores_of_curves() {
    printf 'Chick,Time,weight,Diet\nc2,20,140,oats\nc1,12,50,corn\nc1,14,60,corn\nnew,4,51,oats\n' >t.csv
    score --context c.csv --targets t.csv >all.txt && says "new" all.txt && says '"warnings":["1 of the 3 curves of t.csv has no points' all.txt || return 1
    # each as in files of its own, then the sum and the mean in which each counts the same
    sum=0 mean=0
    for g in c2 c1 new; do
        grep -e ^Chick -e "^$g," c.csv >c_1.csv && grep -e ^Chick -e "^$g," t.csv >t_1.csv || return 1
        score --context c_1.csv --targets t_1.csv >one.txt || return 1
        total=$(sed 's/,"groups.*//' one.txt | number total) && each=$(sed 's/,"groups.*//' one.txt | number loglik)
        says "\"total\":$total," all.txt && says "\"loglik\":$each," all.txt || return 1
        sum=$(awk "BEGIN { printf \"%.12g\", $sum + $total }") && mean=$(awk "BEGIN { printf \"%.12g\", $mean + $each / 3 }")
    done
    sed 's/,"groups.*//' all.txt >top.txt
    awk "BEGIN { d = $sum - $(number total <top.txt); e = $mean - $(number loglik <top.txt); exit !(d * d < 1e-12 && e * e < 1e-12) }"
}
an_unseen_category() {
    sed 's/corn/rye/' chicks.csv >rye.csv
    "$MNP" eval l.safetensors --data rye.csv --json >e.txt 2>err.txt && says '"warnings":["rye.csv:' e.txt &&
        says "warning: rye.csv:112: Diet is rye, a category that the model has not seen (110 of 220 rows have such)" err.txt
}
run "score: every curve given its own points, and the mean" scores_of_curves
# What is constant in a curve, left out or empty, is the context's: the same bits as when it is said.
constants_of_the_context() {
    local f
    printf 'Chick,Time,weight,Diet\nc2,12,70,oats\nc1,10,90,corn\nc1,12,99,corn\n' >t_said.csv
    cut -d, -f1-3 t_said.csv >t_out.csv
    sed 's/,[a-z]*$/,/; 1s/,$/,Diet/' t_said.csv >t_empty.csv
    for f in said out empty; do
        "$MNP" score l.safetensors --context c.csv --targets t_$f.csv --json --quiet >s_$f.txt || return 1
    done
    cmp s_said.txt s_out.txt && cmp s_said.txt s_empty.txt &&
        sed '2,3s/corn/oats/' c.csv >oats.csv && # the context's diet is what counts
        "$MNP" score l.safetensors --context oats.csv --targets t_out.csv --json --quiet >s_oats.txt &&
        ! cmp -s s_said.txt s_oats.txt || return 1
    # one curve, and the group in one table alone
    printf 'Time,weight\n10,90\n12,99\n' >t_one.csv && sed -n 1,3p c.csv >c_one.csv && grep -v c2 t_said.csv >t_c1.csv &&
        "$MNP" score l.safetensors --context c_one.csv --targets t_one.csv --json --quiet | sed 's/,"groups.*//' >one.txt &&
        "$MNP" score l.safetensors --context c_one.csv --targets t_c1.csv --json --quiet | sed 's/,"groups.*//' | cmp - one.txt
}
exact_without_latents() {
    "$MNP" score l.safetensors --context c.csv --targets t_said.csv --condition exact >out.txt 2>err.txt &&
        says "this model has no latents and its score is exact: --condition is not used" err.txt &&
        "$MNP" score l.safetensors --context c.csv --targets t_said.csv >plain.txt 2>err.txt &&
        cmp out.txt plain.txt && ! grep -q 'is not used' err.txt
}
run "score: what is constant in a curve may be left to the context" constants_of_the_context
run "score: --condition of a model without latents is a note" exact_without_latents
run "eval: a category that the model has not seen is a warning" an_unseen_category

# ---- the way of drawing that the model notes
the_noted_condition() {
    cp m.safetensors noted.safetensors && "$MNP" info noted.safetensors --note condition=exact --quiet || return 1
    printf 'x,y\n0,0.1\n1,0.5\n' >two.csv
    "$MNP" predict noted.safetensors --context two.csv --grid 0:1:2 --samples 32 --out e.csv --json --quiet >e.txt &&
        says '"condition":"exact"' e.txt &&
        "$MNP" predict noted.safetensors --context two.csv --grid 0:1:2 --samples 32 --condition network --out e.csv --json --quiet >e.txt &&
        says '"condition":"network"' e.txt
}
run "the model's note says how functions are drawn; --condition wins" the_noted_condition

# ---- refusals
printf 'PK\003\004' >book.xlsx
printf 'Chick,Time,weight\nc1,0,40\n' >short.csv
printf 'Chick,Time\nc7,3\n' >unknown.csv
printf 'Chick,Time,weight\nc7,3,50\n' >t_c7.csv
printf 'Time,weight,Diet\n0,40,corn\n' >nobody.csv
run "a spreadsheet" fails 1 "save the sheet as CSV" "$MNP" predict l.safetensors --context book.xlsx --grid 0:1:2
run "a constant input that nobody says" fails 1 "there is no column \"Diet\"" \
    "$MNP" predict l.safetensors --context short.csv --grid 0:1:2
run "nor the context" fails 1 'Diet is not given for the curve "c7"' \
    "$MNP" predict l.safetensors --at unknown.csv --quiet
run "a context without the group" fails 1 'tells curves apart by "Chick", and nobody.csv has no such column' \
    "$MNP" predict l.safetensors --context nobody.csv --at a.csv --quiet
run "score: a constant input that the context does not say" fails 1 'Diet is not given for the curve "c1", and there is no context' \
    "$MNP" score l.safetensors --targets short.csv --quiet
run "score: nor for this curve" fails 1 'Diet is not given for the curve "c7", and c.csv does not say it' \
    "$MNP" score l.safetensors --context c.csv --targets t_c7.csv --quiet
run "score: whose points the targets are" fails 1 "c.csv holds several curves, and nobody.csv does not say" \
    "$MNP" score l.safetensors --context c.csv --targets nobody.csv --quiet
run "score: whose points the context has" fails 1 "c.csv holds several curves, and nobody.csv does not say" \
    "$MNP" score l.safetensors --context nobody.csv --targets c.csv --quiet
for q in 0.5,0.5 1.5 x '' 0.1,,0.2; do
    run "no quantiles: '$q'" fails 2 "--quantiles wants" "$MNP" predict l.safetensors --grid 0:1:2 --quantiles "$q"
done

# ---- options that do not exist
while read -r command given meant; do
    run "mnp $command --$given: --$meant is meant" fails 2 "did you mean --$meant?" "$MNP" "$command" "--$given" 3
done <<'END'
predict quantile quantiles
predict outfile out
predict number-of-samples samples
predict id group
train learning-rate set lr=VALUE
train rff-std set rff_std=VALUE
train epochs steps
END
check_done
