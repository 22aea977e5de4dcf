#!/usr/bin/env bash
# test_gp.sh: gp, cbp, lmm and oracle from the command line, through the commands that serve every model.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 12; f++) for (i = 0; i < 9; i++) {
        a = rand() * 10; b = rand() * 10; print "s" f "," a "," b "," 5 + sin(a) + b / 5 + f / 9 } }' \
    >ore.csv
awk 'BEGIN { print "east,north,grade"; print "1,2,6"; print "4,4,5.5"; print "9,1,5" }' >c.csv

number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}

oracle_scores() { # known to 0.01 on 5 000 functions; the standard error here is 0.02
    "$MNP" train --model oracle --data rbf --functions 20 --out o --quiet &&
        "$MNP" eval o.safetensors --functions 100 --draws 0 --json >o.json &&
        awk -v a="$(number loglik o.json)" 'BEGIN { exit !(a > 2.7 && a < 2.86) }'
}
no_sleep() { # without latents there is nothing to find
    ! "$MNP" train --model gp --data rbf --functions 20 --set sleep=1 --out no 2>err.txt &&
        grep -q 'sleep=1: this model has no latents' err.txt && [ ! -e no.safetensors ]
}
oracle_refuses() {
    ! "$MNP" train --model oracle --data monotonic --functions 20 --out no 2>err.txt &&
        grep -q '3.186 nats' err.txt && [ ! -e no.safetensors ]
}
own_data() { # MODEL OPTIONS...: a CSV with two inputs, start to end
    local kind=$1
    shift
    "$MNP" train --model "$kind" --data ore.csv --function-column site --x east,north --y grade \
        --steps 20 --batch 4 --out "$kind" --quiet "$@" &&
        "$MNP" eval "$kind.safetensors" | grep -q exact &&
        "$MNP" check "$kind.safetensors" --functions 2 --json >law.json &&
        awk -v a="$(number conditional law.json)" 'BEGIN { exit !(a < 1e-6) }' &&
        "$MNP" predict "$kind.safetensors" --context c.csv --grid 0:10:3,0:10:3 --out p.csv &&
        [ "$(head -n 1 p.csv)" = east,north,mean,sd,q05,q25,q50,q75,q95 ] &&
        [ "$(wc -l <p.csv)" = 10 ] && ! grep -qi nan p.csv &&
        "$MNP" sample "$kind.safetensors" --context c.csv --at c.csv -n 3 --out s.csv &&
        [ "$(wc -l <s.csv)" = 10 ] &&
        "$MNP" score "$kind.safetensors" --context c.csv --targets c.csv | grep -q exact &&
        "$MNP" plot "$kind.safetensors" --context c.csv --out "$kind.svg" && grep -q '<svg' "$kind.svg"
}
plots() { # with one input
    "$MNP" plot o.safetensors --out o.svg && grep -q '<svg' o.svg
}
resumes() { # the same bytes as without a stop
    "$MNP" train --model gp --data periodic:points=16 --functions 40 --steps 9 --batch 2 --out a \
        --quiet &&
        "$MNP" train --model gp --data periodic:points=16 --functions 40 --steps 9 --batch 2 --out b \
            --stop-at 4 --quiet &&
        "$MNP" train --resume b.safetensors --quiet && cmp a.last.safetensors b.last.safetensors
}

lmm_choice() { # of a table: knots, warnings, the same file with any number of threads and after a resume
    awk 'BEGIN { srand(3); print "who,t,y"
        for (f = 0; f < 15; f++) { a = rand(); b = rand()
            for (i = 0; i < 8; i++) { t = rand() * 4; print "w" f "," t "," a + 3 * b * t + sin(t) + rand() / 9 } } }' >w.csv
    "$MNP" train --model lmm --data w.csv --holdout 0 --threads 1 --out one --quiet &&
        "$MNP" train --model lmm --data w.csv --holdout 0 --threads 2 --out two --quiet &&
        cmp one.safetensors two.safetensors &&
        "$MNP" train --resume two.safetensors --quiet && cmp one.safetensors two.safetensors &&
        "$MNP" info one.safetensors >info.txt && grep -q 'lmm_fixed=[1-9]' info.txt &&
        grep -q 'lmm_random=2 ' info.txt && ! grep -q ': 0 parameters' info.txt &&
        head -n 33 w.csv >four.csv &&
        "$MNP" train --model lmm --data four.csv --holdout 0 --out four 2>err.txt &&
        grep -q '^warning: 4 curves say little' err.txt
}
lmm_refuses() {
    fails 1 'use fewer knots' "$MNP" train --model lmm --data ore.csv --function-column site --x east,north --y grade \
        --out no --quiet --set lmm_random=16 && [ ! -e no.safetensors ]
}

# At evenly spaced times a part of the period would fit as well.
period_of_even_times() {
    awk 'BEGIN { srand(2); print "id,t,y"
        for (c = 0; c < 30; c++) { p = 6.28 * rand()
            for (t = 0; t < 20; t++) printf "%d,%d,%.4f\n", c, t, sin(1.256637 * t + p) + 0.02 * rand() } }' >even.csv
    "$MNP" train --model gp --data even.csv --steps 300 --out even --quiet &&
        "$MNP" info even.safetensors >info.txt && grep -Eq 'period (5|5\.0.|4\.9.) in t' info.txt &&
        "$MNP" info even.safetensors --json | grep -q '"learned":"RBF: sd '
}

run "the oracle's score" oracle_scores
run "the period of evenly spaced times" period_of_even_times
run "the oracle refuses a family without one" oracle_refuses
run "a process without latents does not sleep" no_sleep
run "gp on a CSV of two inputs" own_data gp
run "cbp on a CSV of two inputs" own_data cbp --preset tiny
run "gp with a population curve" own_data gp --set gp_mean=spline
run "lmm on a CSV of two inputs" own_data lmm
run "lmm chooses its knots" lmm_choice
run "lmm refuses too many knots" lmm_refuses
run "a plot" plots
run "resume" resumes
check_done
