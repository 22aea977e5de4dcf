#!/usr/bin/env bash
# test_tasks.sh: the predictive tasks from the command line: frozen test sets, and the scores of the process that made them.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
root=$PWD
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}

frozen() { # the sets of the table, drawn again; reading them checks the CRC of every array
    python3 "$root/lab/predictive/frozen.py" --mnp "$MNP" --check "$root/lab/predictive/frozen.csv" . >table.csv
}
frozen_notices() { # another constant is another set
    sed 's/^tnp-rbf,1000,0,24168/tnp-rbf,1000,0,24169/' "$root/lab/predictive/frozen.csv" >wrong.csv
    ! python3 "$root/lab/predictive/frozen.py" --mnp "$MNP" --check wrong.csv . >/dev/null 2>err.txt &&
        grep -q '^tnp-rbf: not the frozen set' err.txt && ! grep -q '^np-eq' err.txt
}
any_threads() {
    "$MNP" eval truth --data tnp-matern --functions 6 --threads 1 --json --quiet >one.json &&
        "$MNP" eval truth --data tnp-matern --functions 6 --threads 3 --json --quiet >three.json &&
        cmp one.json three.json
}
of_a_model() { # mnp eval says the same of the same functions and contexts
    "$MNP" train --model gp --data tnp-rbf --functions 20 --steps 2 --out g --quiet &&
        "$MNP" eval g.safetensors --functions 6 --draws 50 --json --quiet >g.json &&
        "$MNP" eval truth --data tnp-rbf --functions 6 --json --quiet >t.json &&
        awk -v a="$(number loglik_true g.json)" -v b="$(number joint t.json)" -v c="$(number marginal_true g.json)" \
            -v d="$(number marginal t.json)" -v l="$(number loglik g.json)" 'BEGIN {
            exit !(a - b < 1e-4 && b - a < 1e-4 && c - d < 1e-4 && d - c < 1e-4 && l < b) }'
}
refuses() {
    fails 1 'mnp eval truth --data tnp-rbf' "$MNP" train --model oracle --data tnp-rbf --functions 20 --out no --quiet &&
        fails 1 'convex has no density that is known' "$MNP" eval truth --data convex --functions 2 --quiet &&
        fails 1 'sde:start=0.4:0.4 has no density that is known' "$MNP" eval truth --data sde:start=0.4:0.4 --functions 2 --quiet &&
        fails 2 'needs --data with a built-in family' "$MNP" eval truth --quiet
}
of_models() { # flags that the truth has no use for
    local flag
    for flag in '--samples 5' '--protocol authors' '--order x' '--order random --orders 2' '--draws 5' '--condition network'; do
        # shellcheck disable=SC2086
        fails 2 "is for a model: mnp eval truth has no use for it" "$MNP" eval truth --data tnp-rbf --functions 2 $flag --quiet || return
    done
}
no_targets() { # a function without targets has no score
    fails 1 'targets=0:50: a function needs a target' "$MNP" eval truth --data tnp-rbf:targets=0:50 --functions 2 --quiet &&
        "$MNP" eval truth --data tnp-rbf:targets=1:50 --functions 2 --json --quiet >few.json &&
        "$MNP" eval truth --data tnp-rbf:targets=0 --functions 2 --json --quiet >all.json &&
        [ "$(number targets few.json)" -lt "$(number targets all.json)" ]
}
own_data() { # a set of floats is for what was drawn as floats
    "$MNP" gen tnp-rbf --functions 2 --out own.csv --quiet &&
        fails 1 'only a built-in family has an .npz file' "$MNP" gen own.csv --out own.npz --quiet && [ ! -e own.npz ]
}

run "frozen test sets" frozen
run "another set is noticed" frozen_notices
run "the truth for any number of threads" any_threads
run "the truth beside a model" of_a_model
run "what has no truth" refuses
run "flags of a model" of_models
run "a task without targets" no_targets
run "a test set of other data" own_data
check_done
