#!/usr/bin/env bash
# test_names.sh: a name that is none is refused in one line, status not 0, with the nearest name there is:
# commands, options, their values, --set keys, families, presets, models, agents, devices, studies.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=$BUILD/mnp
models=$PWD/models
cd "$TEST_TMP" || exit 1

# meant WORD ARGUMENT...: the one line ends its refusal with "did you mean WORD?"
meant() {
    local word=$1 said status
    shift
    said=$("$MNP" "$@" 2>&1 >/dev/null)
    status=$?
    echo "$said"
    [ $status -ne 0 ] && [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == *"; did you mean $word?"* ]]
}
# lists WORD ARGUMENT...: nothing is near, and the names there are are listed
lists() {
    local word=$1 said
    shift
    ! said=$("$MNP" "$@" 2>&1 >/dev/null) && [[ $said == *"; there are: "*"$word"* && $said != *"did you mean"* ]]
}
tiny=(train --data monotonic --functions 20 --preset tiny --steps 2 --quiet)

run command meant train trian
run "command of help" meant predict help pedict
run option meant --steps train --stpes 3
run "option of plot" meant --chain plot "$models/mnp-rbf.safetensors" --chian
run "value of an option" meant strict eval "$models/mnp-rbf.safetensors" --protocol stric
run "set: training" meant valid_every "${tiny[@]}" --set valid_evry=3
run "set: model" meant transition "${tiny[@]}" --set transitoin=rqs
run "set: a value" meant deepset "${tiny[@]}" --set encoder=depset
run "set: of an agent" meant hidden train --model maml --data wheel --set hiden=3
run family meant monotonic train --data monotonc
run "constant of a family" meant noise train --data monotonic:nose=3
run preset meant tiny train --data monotonic --preset tny
run model meant gp-authors train --data monotonic --model gp-author
run "model that is an agent" meant maml train --data wheel --model mmal
run "order of sums" meant fast "${tiny[@]}" --reduce fats
run "no model near" lists cbp train --data monotonic --model nonsense
run device meant cuda "${tiny[@]}" --device cdua
run gpu meant cuda "${tiny[@]}" --device gpu
run precision meant tf32 "${tiny[@]}" --device cuda --math tf31
run agent meant maml bandit --agent mmal
run policy meant greedy bandit "$models/wheel-mnp-t1.safetensors" --policy gredy
run study meant table1 repro tabel1
run part meant gemm bench gem
run "no family near" lists convex train --data nonsense
run "no agent near" lists c-bruno bandit --agent nobody
run "no preset near" lists wheel5 train --data monotonic --preset nonsense

# mnp help train begins with five options, and every other flag stands under a heading
five_first() {
    "$MNP" help train >said && awk '/^the five options/ {on = 1; next} on && !/^  --/ {exit} on {print $1}' said >five &&
        [ "$(tr '\n' ' ' <five)" = "--data --out --seconds --preset --model " ] && ! grep -q '^options:' said &&
        [ "$(grep -c '^[a-zA-Z].*:$' said)" -ge 7 ]
}
run "five options first" five_first
# and every option of a new model is in one group, as often as it is an option of anything
grouped() {
    local name
    "$MNP" help train | awk '/^--set options of the (model|training)/ {on = 1} /^--set options of the agent/ {on = 0} on' |
        grep -oE '^  [A-Za-z_0-9]+=' | tr -d ' =' | sort >said
    [ "$(uniq -d <said)" = "" ] || return 1
    "$MNP" "${tiny[@]}" --out new || return 1
    "$MNP" info new.safetensors | sed -n 's/^  options  *//p; s/^  train  *//p' | tr ' ' '\n' | sed 's/=.*//' |
        sort | cmp - said && rm new.*
}
run "every option in its group" grouped

# --set belongs to the commands that have options to set
set_elsewhere() { ! "$MNP" predict "$models/mnp-rbf.safetensors" --grid 0:1:3 --set T=3 2>said && grep -q 'no option --set' said; }
run "set elsewhere" set_elsewhere
nothing_left() { rm -f said five && [ -z "$(ls -A)" ]; }
run "nothing is written" nothing_left
check_done
