#!/usr/bin/env bash
# test_scores.sh: mnp eval with scores of draws, from the command line: lines, JSON, refusals.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

"$MNP" train --data rbf:points=12 --functions 40 --preset tiny --steps 3 --quiet --out m || exit 1
eval_m() { "$MNP" eval m.safetensors --functions 3 --samples 2 "$@"; }
number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}
has() { # FILE KEY...
    local file=$1 key
    shift
    for key; do grep -q "\"$key\":" "$file" || { echo "$file has no $key"; return 1; }; done
}
scores="marginal marginal_se marginal_mixture marginal_mixture_half marginal_true marginal_short
    crps crps_true kl_true pit coverage50 coverage80 coverage95 context_off warned"

plain() { # nothing is added where nothing is asked for
    eval_m --json --quiet >plain.json && ! grep -q '"marginal\|"condition\|"pit\|"network' plain.json &&
        has plain.json crps coverage50 by_context
}
draws_alone() { # the network's
    eval_m --draws 8 --context 2,5 --json --quiet >d.json && has d.json $scores condition seconds &&
        grep -q '"condition":"network","draws":8' d.json && ! grep -q '"network":' d.json &&
        [ "$(grep -o '"lo":[0-9]*,"hi":[0-9]*,"functions":3' d.json | tr '\n' ' ')" = \
            '"lo":2,"hi":2,"functions":3 "lo":5,"hi":5,"functions":3 ' ]
}
exact_beside_network() {
    eval_m --draws 8 --context 2,5 --condition exact --gradients 60 --json --quiet >e.json &&
        has e.json $scores network acceptance particle_ess rhat gradients &&
        [ "$(grep -o '"marginal":' e.json | wc -l)" = 6 ] &&       # all, two sizes; twice
        [ "$(number loglik d.json)" = "$(number loglik e.json)" ] && # the bound is what it was
        grep -o '"network":.*' e.json >n.txt &&
        [ "$(number marginal n.txt)" = "$(number marginal d.json)" ] # and so are the network's draws
}
table() {
    eval_m --draws 8 --context 2,5 --condition refine --gradients 10 >t.txt 2>/dev/null &&
        grep -q '^  8 draws by refine' t.txt && [ "$(grep -c ' refine ' t.txt)" = 3 ] &&
        [ "$(grep -c ' network ' t.txt)" = 3 ]
}
joint_and_sandwich() {
    eval_m --draws 8 --context 2,5 --joint 2 --sandwich --gradients 60 --json >j.json 2>/dev/null &&
        has j.json joint_exact joint_exact_se joint_exact_bias joint_hurried joint_true joint_short &&
        grep -q '"sandwich":{"lower":[-0-9.e+]*,"upper":[-0-9.e+]*,"gap":[-0-9.e+]*,"se":[0-9.e+-]*}' j.json
}
joint_particles() { # are no matter of the draws
    for draws in 8 100; do
        eval_m --draws $draws --context 5 --joint 2 --gradients 60 --json --quiet >p$draws.json || return 1
    done
    eval_m --draws 8 --context 5 --joint 2 --gradients 60 --joint-particles 100 --json >p.json 2>p.txt &&
        [ "$(number joint_exact p8.json)" = "$(number joint_exact p100.json)" ] && grep -q '"joint_particles":64' p100.json &&
        [ "$(number joint_exact p.json)" != "$(number joint_exact p8.json)" ] && grep -q 'by 2 runs of 100 particles' p.txt
}
hurried() { # 10 gradients are two moves, which is not enough for one temperature after another
    eval_m --draws 8 --context 5 --joint 2 --gradients 10 >h.txt 2>&1 &&
        grep -q 'the gradients did not last for [1-9][0-9]* % of the runs' h.txt
}
threads() {
    for t in 1 3; do
        eval_m --draws 8 --context 3 --condition exact --gradients 60 --threads $t --json --quiet |
            sed 's/"seconds":[0-9.e+-]*//g' >t$t.json || return 1
    done
    cmp t1.json t3.json
}
refused() { # WORDS ARGS...: status 2 and one line with the words
    local words=$1
    shift
    eval_m "$@" >out.txt 2>err.txt
    [ $? = 2 ] && [ "$(wc -l <err.txt)" = 1 ] && grep -q -- "$words" err.txt && [ ! -s out.txt ]
}
refusals() {
    refused 'rising sizes' --context 5,2 && refused 'rising sizes' --context 5,,7 &&
        refused 'rising sizes' --context 1,2,3,4,5,6,7,8,9 &&
        refused '2 draws or more' --condition exact --draws 0 &&
        refused '--condition' --condition best && refused '--joint' --joint 1 &&
        refused 'is for --joint' --joint-particles 8 &&
        refused '--gradients' --gradients 5
}
no_latents() {
    "$MNP" train --model oracle --data rbf:points=12 --functions 20 --out o --quiet &&
        "$MNP" eval o.safetensors --functions 3 --draws 50 --json --quiet >o.json &&
        has o.json marginal && ! "$MNP" eval o.safetensors --joint 2 --functions 3 2>err.txt &&
        grep -q 'no latents' err.txt
}

large_contexts() { # of functions with 12 points: said once, also in JSON, and not of 11
    local line='3 of 3 functions have no more than 12 points: their contexts leave out one'
    eval_m --context 12:12 --json >large.json 2>large.err && eval_m --context 11:11 --json >fits.json 2>fits.err || return 1
    cat large.err fits.err
    grep -qx "warning: $line" large.err && grep -qF "\"warnings\":[\"$line\"]" large.json && ! grep -q warning: fits.err &&
        [ "$(number loglik large.json)" = "$(number loglik fits.json)" ] && eval_m --context 2,5,12 --quiet --json | grep -qF "[\"$line\"]"
}
run "eval: contexts as large as the functions" large_contexts
run "eval: a file that is missing" fails 1 'nope.csv: cannot open' "$MNP" eval m.safetensors --data nope.csv
run "eval: without flags nothing is added" plain
run "eval --draws: the network's draws" draws_alone
run "eval --condition exact: the network's beside it" exact_beside_network
run "eval: the table" table
run "eval --joint --sandwich" joint_and_sandwich
run "eval --joint-particles" joint_particles
run "a joint score says which share of its runs had too few gradients" hurried
run "eval: the same numbers for any number of threads" threads
run "eval: refusals" refusals
run "eval: a model without latents" no_latents
check_done
