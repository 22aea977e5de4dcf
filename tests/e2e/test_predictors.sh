#!/usr/bin/env bash
# test_predictors.sh: cnp, tnp and convcnp from the command line, through the commands that serve every model.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

printf 'x,y\n-1,0.5\n0,0.2\n1,-0.3\n' >c.csv
printf 'x,y\n-0.5,0.5\n0.5,0.2\n1.5,0\n' >t.csv
printf 'id,x,y\na,-1,0.5\nb,0,0.2\nb,1,-0.3\n' >cc.csv
printf 'id,x,y\na,0.5,0.5\nb,0.5,0.2\na,1,0\n' >tt.csv

number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}
small="--data rbf:points=24,context=2:10 --functions 60 --preset tiny --batch 8 --quiet"

everything() { # MODEL OPTIONS...: every command answers
    local kind=$1
    shift
    # shellcheck disable=SC2086
    "$MNP" train --model "$kind" $small --steps 30 --out "$kind" "$@" &&
        "$MNP" eval "$kind.safetensors" --functions 10 | grep -q 'each point by itself' &&
        "$MNP" info "$kind.safetensors" | grep -q "kind=$kind " &&
        "$MNP" predict "$kind.safetensors" --context c.csv --grid -1:1:5 --out p.csv --quiet &&
        [ "$(wc -l <p.csv)" = 6 ] && ! grep -qi nan p.csv &&
        "$MNP" sample "$kind.safetensors" --context c.csv --at t.csv -n 4 --out s.csv --quiet &&
        [ "$(wc -l <s.csv)" = 13 ] &&
        [ "$(tail -n +2 s.csv | cut -d, -f2,3 | sort -u | wc -l)" = 3 ] && # the mean, four times
        "$MNP" score "$kind.safetensors" --context c.csv --targets t.csv | grep -q 'each point by itself' &&
        "$MNP" plot "$kind.safetensors" --context c.csv --out "$kind.svg" --quiet && grep -q '<svg' "$kind.svg"
}
many_points() { # one more than in training
    awk 'BEGIN { print "x,y"; for (i = 0; i < 11; i++) print i / 10 "," i }' >many.csv
    "$MNP" predict convcnp.safetensors --context many.csv --grid -1:1:5 --out p.csv 2>note.txt &&
        grep -q '^warning: 11 observed points are more than the model was trained with (10)$' note.txt &&
        sed -i '$d' many.csv && "$MNP" predict convcnp.safetensors --context many.csv --grid -1:1:5 --out p.csv 2>note.txt && ! grep -q 'trained with' note.txt
}
no_process() { # MODEL: the first two laws hold to rounding, the third does not
    "$MNP" check "$1.safetensors" --functions 4 >law.txt && grep -q 'no process' law.txt &&
        "$MNP" check "$1.safetensors" --functions 4 --json >law.json &&
        awk -v p="$(number permutation law.json)" -v m="$(number marginal law.json)" \
            -v c="$(number conditional law.json)" 'BEGIN { exit !(p < 1e-4 && m < 1e-5 && c > 1e-3) }'
}
in_turn() { # by hand: the score of a pair is that of the first given the context plus the second given both
    local one two both
    head -n 2 t.csv >first.csv && sed '2d' t.csv | head -n 2 >second.csv && head -n 3 t.csv >pair.csv &&
        cat c.csv >more.csv && tail -n 1 first.csv >>more.csv &&
        "$MNP" score tnp.safetensors --context c.csv --targets first.csv --json >1.json &&
        "$MNP" score tnp.safetensors --context more.csv --targets second.csv --json >2.json &&
        "$MNP" score tnp.safetensors --context c.csv --targets pair.csv --order x --json >3.json &&
        one=$(number total 1.json) two=$(number total 2.json) both=$(number loglik_in_turn 3.json) &&
        awk -v a="$one" -v b="$two" -v c="$both" 'BEGIN { d = a + b - 2 * c; exit !(d < 1e-5 && d > -1e-5) }'
}
orders() {
    "$MNP" score cnp.safetensors --context c.csv --targets t.csv --order random --orders 5 | grep -q '5 orders differ by 0\.' &&
        "$MNP" eval tnp.safetensors --functions 3 --order random --orders 3 --json >o.json &&
        awk -v s="$(number order_sd o.json)" -v l="$(number loglik_in_turn o.json)" 'BEGIN { exit !(s > 0 && l != 0) }' &&
        fails 2 'there is one order' "$MNP" eval tnp.safetensors --order x --orders 3 &&
        fails 2 'for --order random' "$MNP" score tnp.safetensors --targets t.csv --orders 3
}
draws_in_turn() { # several curves, each given its own points; the same bytes with the same seed
    "$MNP" sample convcnp.safetensors --context cc.csv --at tt.csv --group id -n 3 --order random --out 1.csv --quiet &&
        "$MNP" sample convcnp.safetensors --context cc.csv --at tt.csv --group id -n 3 --order random --out 2.csv --quiet &&
        cmp 1.csv 2.csv && [ "$(wc -l <1.csv)" = 10 ] && [ "$(cut -d, -f4 1.csv | sort -u | wc -l)" = 10 ] &&
        fails 2 'leave out --base' "$MNP" sample convcnp.safetensors --at t.csv --order x --base zero
}
resumes() { # the same bytes as without a stop
    # shellcheck disable=SC2086
    "$MNP" train --model tnp $small --steps 12 --out a && "$MNP" train --model tnp $small --steps 12 --stop-at 5 --out b &&
        "$MNP" train --resume b.safetensors --quiet && cmp a.last.safetensors b.last.safetensors
}
two_inputs() { # convcnp has a grid of one
    awk 'BEGIN { srand(1); print "id,a,b,y"; for (f = 0; f < 12; f++) for (i = 0; i < 6; i++) print f "," rand() "," rand() "," rand() }' >ab.csv
    fails 1 'use tnp or cnp' "$MNP" train --model convcnp --data ab.csv --x a,b --steps 2 --out no --quiet &&
        "$MNP" train --model tnp --data ab.csv --x a,b --steps 2 --out ab --quiet
}
grid_of_the_data() { # x from 100 to 103 is standardised; the grid covers it
    awk 'BEGIN { srand(2); print "id,x,y"; for (f = 0; f < 20; f++) for (i = 0; i < 8; i++) { x = 100 + 3 * rand(); print f "," x "," sin(x + f) } }' >far.csv
    "$MNP" train --model convcnp --data far.csv --steps 5 --out far --quiet &&
        "$MNP" info far.safetensors | grep -o 'grid_lo=[-0-9.]* grid_hi=[-0-9.]*' |
        awk -F'[ =]' '{ exit !($2 < -1.7 && $2 > -2.6 && $4 > 1.7 && $4 < 2.6) }'
}
one_end_of_the_grid() { # the other one stays where the data end: uniform inputs are within sqrt(3) of their mean
    "$MNP" train --model convcnp --data far.csv --set grid_hi=4 --steps 5 --out wide --quiet &&
        "$MNP" info wide.safetensors | grep -o 'grid_lo=[-0-9.]* grid_hi=[-0-9.]*' |
        awk -F'[ =]' '{ exit !($2 < -1.5 && $2 > -2.1 && $4 == 4) }' &&
        fails 1 'grid_lo=3 lies above grid_hi=1' "$MNP" train --model convcnp --data far.csv --set grid_lo=3 --set grid_hi=1 --steps 5 --out no --quiet
}

run "cnp, every command" everything cnp
run "tnp, every command" everything tnp --set head=mixture
run "convcnp, every command" everything convcnp
run "more points than in training" many_points
run "cnp is no process" no_process cnp
run "tnp is no process" no_process tnp
run "convcnp is no process" no_process convcnp
run "a score in turn" in_turn
run "orders" orders
run "draws in turn" draws_in_turn
run "resume" resumes
run "inputs" two_inputs
run "the grid" grid_of_the_data
run "one end of the grid" one_end_of_the_grid
check_done
