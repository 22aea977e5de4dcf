#!/usr/bin/env bash
# test_bandit_log.sh: a person's own log of decisions, from training to replay; trained agents.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
data=$PWD/examples/data
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

value() { sed -E "s/.*\"$1\":([^,}]*).*/\1/" "$2"; }
better() { # FILE LEAST: reward of the agent there, well above the log's own
    awk -v r="$(value reward "$1")" -v l="$(value log_reward "$1")" -v least="$2" \
        'BEGIN { print r, l; exit !(r > least && l > 2.5 && l < 2.7) }'
}

example_data_is_made() {
    mkdir -p made && python3 "$data/make_offers.py" made && cmp made/offers.csv "$data/offers.csv" &&
        cmp made/offers_new.csv "$data/offers_new.csv"
}
model_learns_and_plays() {
    "$MNP" train --data "$data/offers.csv" --action action --preset tiny --set rff=0 --set encoder=deepset \
        --steps 300 --batch 12 --set valid_functions=5 --seed 1 --out m >train.txt 2>/dev/null || return 1
    cat train.txt
    grep -q 'action "action", one input per value; y "reward"' train.txt &&
        "$MNP" bandit m.safetensors --log "$data/offers_new.csv" --passes 4 --json --quiet >m.json &&
        cat m.json && better m.json 3.3
}
# the notes of the model open the same data again
model_is_scored() {
    "$MNP" eval m.safetensors --functions 5 --draws 0 --json --quiet >eval.json && grep -q loglik eval.json
}
agents_learn_and_play() {
    local agent
    for agent in maml c-bruno; do
        "$MNP" train --model $agent --data "$data/offers.csv" --action action --steps 250 --seed 1 \
            --out $agent.safetensors --json --quiet >t.json && grep -q "\"agent\":\"$agent\"" t.json &&
            "$MNP" bandit $agent.safetensors --log "$data/offers_new.csv" --passes 4 --json --quiet >a.json &&
            cat a.json && better a.json 3.0 || return 1
    done
}
same_for_any_threads() {
    "$MNP" bandit maml.safetensors --log "$data/offers_new.csv" --passes 3 --json --quiet --threads 1 >1.json &&
        "$MNP" bandit maml.safetensors --log "$data/offers_new.csv" --passes 3 --json --quiet --threads 2 >2.json &&
        cmp 1.json 2.json &&
        "$MNP" train --model maml --data "$data/offers.csv" --action action --steps 250 --seed 1 --out again --quiet &&
        cmp again maml.safetensors
}
uniform_is_told() {
    "$MNP" bandit --agent uniform --log "$data/offers_new.csv" --passes 2 >u.txt 2>/dev/null && cat u.txt &&
        grep -q '1500 events, 3 actions' u.txt && grep -q 'matched events' u.txt &&
        grep -q 'the logged policy *2.6138' u.txt
}
keys() {
    local key
    for key in agent policy log events actions passes matched reward se sd log_reward log_se seed; do
        grep -q "\"$key\":" m.json || { echo "no $key" && return 1; }
    done
}
wheel_agents() {
    "$MNP" train --model maml --data wheel:points=120 --functions 20 --steps 60 --batch 8 --out wm --quiet &&
        "$MNP" bandit wm --delta 0.5 --trials 2 --steps 300 --json --quiet >w.json && cat w.json &&
        grep -q '"agent":"maml"' w.json &&
        "$MNP" train --model maml --data wheel:points=40 --functions 9 --set steps=7 --json --quiet --out s7 | grep -q '"steps":7,' &&
        awk -v r="$(value cumulative w.json)" 'BEGIN { exit !(r < 60) }'
}
info_tells() { "$MNP" info wm | grep -q 'a trained agent, maml' && "$MNP" info m.safetensors | grep -q parameters; }
bad() { # LINE TEXT: the example's log with a line more
    cp "$data/offers_new.csv" bad.csv
    echo "$1" >>bad.csv
    fails 1 "$2" "$MNP" bandit m.safetensors --log bad.csv
}

if command -v python3 >/dev/null; then
    run "the example data are what their script writes" example_data_is_made
else
    skip "the example data are what their script writes" "python3 is not installed"
fi
run "a model learns from logs and plays another" model_learns_and_plays
run "its data are opened again" model_is_scored
run "agents maml and c-bruno learn and play" agents_learn_and_play
run "the same for any number of threads" same_for_any_threads
run "the uniform agent, for people" uniform_is_told
run "JSON keys" keys
run "a trained agent on the wheel" wheel_agents
run "mnp info of an agent" info_tells
run "a reward that is no number" bad "new,30,20,none,nan,0.5" 'bad.csv:1502: the reward "nan"'
run "an infinite reward" bad "new,30,20,none,inf,0.5" "bad.csv:1502"
run "an unknown action" bad "new,30,20,gift,1,0.5" 'bad.csv:1502: the model does not know the action "gift"'
run "a ragged row" bad "new,30,20,none" "bad.csv:1502"
run "a propensity of 0" bad "new,30,20,none,1,0" "bad.csv:1502: a propensity"
run "a missing context" bad "new,,20,none,1,0.5" 'bad.csv:1502: the context ""'
run "no such column" fails 1 "offer" "$MNP" bandit m.safetensors --log "$data/offers_new.csv" --action offer
run "a flag of the wheel" fails 2 "--delta belongs to the wheel" "$MNP" bandit m.safetensors --log x.csv --delta 0.5
run "maml without its file" fails 1 "needs its file" "$MNP" bandit --agent maml --log "$data/offers_new.csv"
run "a model of other inputs" fails 1 "inputs" "$MNP" bandit wm --log "$data/offers_new.csv"
run "an agent's file and another agent" fails 2 "is an agent maml" "$MNP" bandit wm --agent mnp --trials 1 --steps 20
run "flags that are not for agents" fails 2 "--resume is not for --model maml" "$MNP" train --model maml --resume m
run "options of an agent" fails 1 "inner" "$MNP" train --model maml --data wheel --set iner=3 --out none
run "nothing is left of a refused training" test ! -e none
check_done
