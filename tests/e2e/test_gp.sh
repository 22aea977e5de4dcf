#!/usr/bin/env bash
# test_gp.sh: gp, cbp and oracle from the command line, through the commands that serve every model.
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

run "the oracle's score" oracle_scores
run "the oracle refuses a family without one" oracle_refuses
run "a process without latents does not sleep" no_sleep
run "gp on a CSV of two inputs" own_data gp
run "cbp on a CSV of two inputs" own_data cbp --preset tiny
run "a plot" plots
run "resume" resumes
check_done
