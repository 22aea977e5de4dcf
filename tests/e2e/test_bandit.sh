#!/usr/bin/env bash
# test_bandit.sh: wheels from the command line: data, a quickly trained model, play, files, errors.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

# Small networks and free scales learn the quadrants in seconds.
small=(--set enc_width=64 --set ds_layers=2 --set flow_hidden=64 --set flow_layers=2 --set flow_gain=1
    --set kappa=8 --set y_scale=10 --set sigma_z_floor=0.05)
"$MNP" train --data wheel:points=120,context=10:100 --functions 200 --preset wheel "${small[@]}" \
    --steps 300 --batch 16 --set valid_functions=10 --set lr=3e-3 --seed 1 --quiet --out w || exit 1
"$MNP" train --data wheel:points=40 --functions 20 --model np --preset wheel --steps 3 \
    --set valid_functions=2 --quiet --out n || exit 1
"$MNP" train --data wheel:points=40 --functions 20 --preset wheel --set T=3 --set transition=rqs \
    --steps 3 --set valid_functions=2 --quiet --out s || exit 1
"$MNP" train --data monotonic --functions 20 --preset tiny --steps 1 --quiet --out one || exit 1

value() { sed -E "s/.*\"$1\":([^,}]*).*/\1/" "$2"; }

data_has_its_columns() {
    "$MNP" gen wheel --functions 2 --out d.csv --quiet &&
        [ "$(head -n 1 d.csv)" = function,x1,x2,a0,a1,a2,a3,a4,reward ] &&
        [ "$(wc -l <d.csv)" = 1125 ] &&
        awk -F, 'NR > 1 { if ($4 + $5 + $6 + $7 + $8 != 1 || $2 ^ 2 + $3 ^ 2 > 1.0001) exit 1 }' d.csv
}
fresh_wheels() {
    "$MNP" train --data wheel:points=40 --functions 8 --batch 8 --fresh --preset wheel --steps 4 \
        --set valid_functions=2 --quiet --out f && [ -s f.safetensors ]
}
# far better than chance, and better than always playing safe (124 %)
plays() {
    "$MNP" bandit w.safetensors --delta 0.5 --trials 4 --steps 600 --seed 2 --json 2>note.txt >j.txt &&
        grep -q 'seed 2' note.txt && cat j.txt &&
        awk -v r="$(value cumulative j.txt)" 'BEGIN { exit !(r > 0 && r < 70) }'
}
has_its_keys() {
    for key in cumulative cumulative_sd cumulative_se simple simple_sd simple_se; do
        awk -v r="$(value $key j.txt)" 'BEGIN { exit !(r >= 0) }' || return 1
    done
}
same_for_threads() {
    for t in 1 3; do
        "$MNP" bandit w.safetensors --delta 0.7 --trials 5 --steps 200 --threads $t --json --quiet \
            --out c$t.csv | sed -E 's/"seconds":[^,]*,//' >t$t.txt || return 1
    done
    cmp t1.txt t3.txt && cmp c1.csv c3.csv && [ "$(head -n 1 c1.csv)" = step,cumulative_regret,sd ] &&
        [ "$(wc -l <c1.csv)" = 201 ]
}
others_play() {
    "$MNP" bandit n.safetensors --agent np --trials 2 --steps 100 --policy ucb --draws 3 &&
        "$MNP" bandit s.safetensors --trials 2 --steps 60 --policy greedy --draws 2 --refresh 10 &&
        "$MNP" bandit --agent gp --trials 2 --steps 100 --options "length=0.4 points=50"
}
# particles that follow the history; the first drawing counts as a move, and weights alone never all
plays_exactly() {
    for t in 1 2; do
        "$MNP" bandit n.safetensors --agent np --trials 2 --steps 30 --condition exact --gradients 40 \
            --threads $t --json 2>e.txt | sed -E 's/"seconds":[^,]*,//' >x$t.txt || return 1
    done
    cmp x1.txt x2.txt && grep -q '"condition":"exact"' x1.txt &&
        grep -q 'exact conditioning; the particles moved in' e.txt &&
        awk -v r="$(value moved x1.txt)" 'BEGIN { exit !(r > 0 && r < 1) }' &&
        "$MNP" bandit s.safetensors --trials 1 --steps 14 --condition refine --gradients 10 --policy ucb \
            --draws 4 --refresh 2 --quiet
}
known_agents() {
    "$MNP" bandit --agent oracle --delta 0.9 --trials 2 --steps 100 --json --quiet >o.txt &&
        [ "$(value cumulative o.txt)" = 0 ] &&
        "$MNP" bandit --agent uniform --trials 2 --steps 600 --json --quiet >u.txt &&
        awk -v r="$(value cumulative u.txt)" 'BEGIN { exit !(r > 99.999 && r < 100.001) }'
}
run "the family wheel has named columns" data_has_its_columns
run "new wheels for every pass" fresh_wheels
run "a trained model plays" plays
run "the result has its keys" has_its_keys
run "threads change no bit" same_for_threads
run "np, splines of several steps, gp" others_play
run "a model plays with exact conditioning" plays_exactly
run "exact conditioning without a model" fails 1 "no latents" "$MNP" bandit --agent gp --condition exact
run "oracle and uniform" known_agents
run "no model" fails 1 "agent mnp needs a model file" "$MNP" bandit
run "a model of other inputs" fails 1 "the model has 1 inputs" "$MNP" bandit one.safetensors
run "an unknown agent" fails 1 "did you mean uniform" "$MNP" bandit --agent unifrom
run "an agent's unknown option" fails 1 "did you mean length" "$MNP" bandit --agent gp --options lenght=1
run "delta out of range" fails 2 "--delta" "$MNP" bandit w.safetensors --delta 1
run "an unknown policy" fails 2 "--policy" "$MNP" bandit w.safetensors --policy tompson
run "a file that is no model" fails 1 "d.csv" "$MNP" bandit d.csv
nothing_half_written() {
    ! "$MNP" bandit w.safetensors --trials 1 --steps 20 --out no/such/c.csv --quiet --json >x.txt 2>&1 &&
        ! grep -q cumulative x.txt && [ ! -e no ]
}
run "a curve that cannot be written" nothing_half_written
check_done
