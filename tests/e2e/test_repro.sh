#!/usr/bin/env bash
# test_repro.sh: micro studies: tables, JSON keys, finished cells kept, interruption, bad names.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
top=$PWD
cd "$tmp" || exit 1

small="--preset tiny --functions 5 --train-functions 60 --batch 4 --set valid_functions=5"
micro="$small --steps 3 --models oracle,np,mnp --data rbf,monotonic --seeds 2"

# fails STATUS "text" COMMAND...: that exit status and one line on stderr that contains the text
fails() {
    local status=$1 text=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    cat out.txt err.txt
    [ $got = "$status" ] && [ "$(wc -l <err.txt)" = 1 ] && grep -qF -- "$text" err.txt
}
# everything but the seconds that were measured, and the folder
timeless() { grep -vE '"(seconds|out)":' "$1"; }
same_tables() {
    cmp "$1/table1.md" "$2/table1.md" && cmp "$1/table1.svg" "$2/table1.svg" &&
        [ "$(timeless "$1/table1.json")" = "$(timeless "$2/table1.json")" ]
}
has_keys() { # FILE KEY...
    local file=$1 key
    shift
    for key in "$@"; do grep -q "\"$key\":" "$file" || { echo "no $key in $file" && return 1; }; done
}

table_and_files() {
    "$MNP" repro table1 $micro --out whole --json >whole.json 2>whole.err || return 1
    [ "$(wc -l <whole.json)" = 1 ] && [ -s whole/table1.svg ] &&
        has_keys whole.json cells model data protocol loglik se &&
        has_keys whole/table1.json cells model data protocol loglik se se_over oracle gap paper \
            paper_se runs steps seeds functions samples train version quick &&
        grep -q '^| rbf | mnp | ' whole/table1.md && grep -q '2.491 ± 0.024' whole/table1.md &&
        grep -q 'No oracle: monotonic' whole/table1.md
}
# strict and authors of 3 models on 2 data sets, less nothing: absent cells are told too
counts() {
    [ "$(grep -c '"protocol"' whole/table1.json)" = 12 ] &&
        [ "$(grep -c '"state": "absent"' whole/table1.json)" = 2 ] &&
        [ "$(ls whole/cells/*.json | wc -l)" = 10 ]
}
# networks train and score otherwise in another precision; exact processes have one
precision_in_key() {
    [ "$(grep -lE '"key":"mnp [^;]*; model m?np, .*, in fp32; training ' whole/cells/*.json | wc -l)" = 8 ] &&
        ! grep -l 'in fp32' whole/cells/oracle-*.json
}
one_protocol() {
    "$MNP" repro table1 $micro --out whole --protocol authors --quiet &&
        ! grep -q 'Protocol strict' whole/table1.md && [ "$(grep -c '"protocol"' whole/table1.json)" = 6 ] &&
        "$MNP" repro table1 $micro --out whole --quiet
}
# a finished cell is read, not run again; another option is another cell
kept() {
    local cell
    cell=$(ls whole/cells/np-rbf-0-*.json)
    sed -i 's/"loglik":[-0-9.e]*/"loglik":7.25/' "$cell"
    "$MNP" repro table1 $micro --out whole >again.txt 2>&1 && grep -q '10 of them are finished' again.txt &&
        grep -q '"loglik": 7.25' whole/table1.json || return 1
    rm "$cell"
    "$MNP" repro table1 $micro --out whole >again.txt 2>&1 && grep -q '9 of them are finished' again.txt &&
        ! grep -qF '"loglik": 7.25' whole/table1.json
}
damaged_cell_runs_again() {
    local cell
    cp -r whole damaged
    cell=$(ls damaged/cells/np-rbf-1-*.json)
    head -c 100 "$cell" >part.json && mv part.json "$cell"
    cell=$(ls damaged/cells/np-rbf-0-*.json) && grep -q '"steps":' "$cell" || return 1
    sed -i 's/"steps":[^,]*/"steps": 1e300/' "$cell" # no number of steps
    "$MNP" repro table1 $micro --out damaged | grep -q '^8 of them are finished' && same_tables whole damaged
}
# a cell is the run that mnp train makes with the same options
cell_is_train() {
    "$MNP" train --model mnp --data rbf --functions 60 --preset tiny --steps 3 --batch 4 --seed 1 \
        --set valid_functions=5 --out alone --quiet || return 1
    local cell
    cell=$(ls whole/cells/mnp-rbf-1-*.safetensors)
    "$MNP" eval alone.safetensors --functions 5 --draws 0 --seed 1 --json --quiet >a.json &&
        "$MNP" eval "$cell" --functions 5 --draws 0 --seed 1 --json --quiet >b.json && cmp a.json b.json &&
        grep -qF "\"loglik\": $(sed 's/^{"loglik":\([^,]*\).*/\1/' a.json)" whole/table1.json
}
# Ctrl-C at some moment, then the same command: the table of the undisturbed study
interrupted_is_exact() {
    local long="--preset tiny --functions 5 --train-functions 60 --models np,mnp --data monotonic --seeds 1
        --steps 60 --batch 100 --set valid_functions=5" pid status
    "$MNP" repro table1 $long --out calm --quiet || return 1
    for _ in 1 2 3; do
        "$MNP" repro table1 $long --out rude --quiet 2>rude.err &
        pid=$!
        at_work $pid 0.4 && kill -INT $pid
        wait $pid
        status=$?
        [ $status = 0 ] && break
        [ $status = 130 ] && [ "$(wc -l <rude.err)" = 1 ] &&
            grep -q 'the same command goes on' rude.err || { cat rude.err && return 1; }
    done
    "$MNP" repro table1 $long --out rude --quiet && same_tables calm rude &&
        ! ls rude/cells/*.train.safetensors 2>/dev/null
}
seconds_are_kept() {
    "$MNP" repro table1 $small --models np --data rbf --seeds 1 --seconds 1 --out timed --quiet &&
        grep -q '"steps": [1-9]' timed/table1.json
}
ablation() {
    "$MNP" repro ablation $small --steps 3 --quick --data rbf --out ab --json >ab.json 2>/dev/null || return 1
    [ "$(wc -l <ab.json)" = 1 ] && [ -s ab/ablation.svg ] && [ "$(grep -c '"variant"' ab/ablation.json)" = 8 ] &&
        has_keys ab/ablation.json cells variant loglik se gap gap_se step_seconds memory seconds conditioning \
            scores samples step_seconds_per_T &&
        grep -q 'Quick settings' ab/ablation.md && grep -q '^| isab |' ab/ablation.md
}
# Trained models from a folder: a file is a seed, what is missing is named, notes do not matter.
trained() {
    local from="--functions 6 --models oracle,np,mnp --data rbf,monotonic --trained box" train
    mkdir -p box
    for seed in 0 1; do
        train="--functions 60 --preset tiny --steps 3 --batch 4 --seed $seed --set valid_functions=5 --quiet"
        "$MNP" train --model mnp --data rbf $train --out t-$seed && cp t-$seed.safetensors box/mnp-rbf-s$seed.safetensors || return 1
    done
    "$MNP" train --model np --data rbf $train --out np && cp np.safetensors box/np-rbf.safetensors &&
        "$MNP" repro table1 $from --out t1 --json >t1.json 2>/dev/null || return 1
    has_keys t1/table1.json trained by_context && [ -s t1/table1-curves.svg ] &&
        [ "$(ls t1/cells/*.json | wc -l)" = 5 ] && ! ls t1/cells/*np-*.safetensors 2>/dev/null &&
        grep -qE '^\| np \| .* \(one seed\) \| — \|$' t1/table1.md &&
        grep -qE '^\| mnp \| -?[0-9.]+ ± [0-9.]+ \| — \|$' t1/table1.md &&
        grep -q 'No mnp: there is no box/mnp-monotonic.safetensors' t1/table1.md &&
        grep -qE '^\| box/mnp-rbf-s1.safetensors \| T=3 \| 1 \| [0-9]+ of 3 \| 60 \| — \|$' t1/table1.md &&
        grep -qE '^\| rbf \| 2–8 \|' t1/table1.md || return 1
    "$MNP" eval t-1.safetensors --functions 6 --draws 0 --seed 1 --json --quiet >a.json &&
        grep -qF "\"loglik\": $(sed 's/^{"loglik":\([^,]*\).*/\1/' a.json)" t1/table1.json &&
        "$MNP" info box/np-rbf.safetensors --note "trained_on=a test" --quiet &&
        "$MNP" repro table1 $from --out t1 | grep -q '^5 of them are finished already' &&
        grep -q '| a test |$' t1/table1.md
}
page_is_filled() {
    mkdir -p page && printf 'a\n<!-- table1 -->\nold\n<!-- /table1 -->\nb\n<!-- table2 -->\n<!-- /table2 -->\n' >page/p.md
    for _ in 1 2; do PAGE=$PWD/page/p.md FIGURES=$PWD/page/figures "$top/lab/results.sh" table1 "$PWD/t1" "Here." >/dev/null || return 1; done
    [ "$(head -n 3 page/p.md | tr '\n' ' ')" = 'a <!-- table1 --> Here. ' ] && ! grep -q '^old' page/p.md &&
        [ "$(tail -n 4 page/p.md | tr '\n' ' ')" = '<!-- /table1 --> b <!-- table2 --> <!-- /table2 --> ' ] &&
        [ "$(grep -c '^### Protocol' page/p.md)" = 2 ] && grep -q '(figures/table1-curves.svg)' page/p.md &&
        cmp page/figures/table1.svg t1/table1.svg
}
trained_wrong() {
    cp box/np-rbf.safetensors box/mnp-matern.safetensors && cp t-0.safetensors box/mnp-sde.safetensors &&
        fails 1 "mnp-matern.safetensors is no mnp: kind=np" "$MNP" repro table1 --models mnp --data matern --trained box --out bad &&
        fails 1 "was trained on rbf, not on sde" "$MNP" repro table1 --models mnp --data sde --trained box --out bad &&
        fails 1 "has no model for this table" "$MNP" repro table1 --models mnp --data rbf --trained cells --out bad
}
# a line of studies.def is a study: it is in the help, has flags of its own, and says where it cannot write
listed_studies() {
    local study studies
    studies=$(sed -n 's/^STUDY(\(.*\))$/\1/p' "$top/lab/studies.def")
    [ "$(wc -w <<<"$studies")" -ge 4 ] && "$MNP" help repro >help.txt || return 1
    for study in $studies; do
        [ "$(grep -c "^  $study  *[a-z]" help.txt)" = 1 ] &&
            fails 2 "there are: $(tr '\n' ' ' <<<"$studies" | sed 's/ $//; s/ /, /g')" "$MNP" repro no-such-study &&
            fails 1 "no/such" "$MNP" repro "$study" --quick --out no/such || return 1
    done
}
nothing_left() { [ ! -e bad ]; }

run "table1: Markdown, JSON, picture" table_and_files
run "every model, data set and protocol is told" counts
run "the precision of networks" precision_in_key
run "--protocol chooses what is shown" one_protocol
run "finished cells are kept" kept
run "a damaged cell is run again" damaged_cell_runs_again
run "a cell is what mnp train makes" cell_is_train
run "Ctrl-C, and the same command gives the same table" interrupted_is_exact
run "--seconds" seconds_are_kept
run "ablation: Markdown, JSON, picture" ablation

run "trained models from a folder" trained
run "a study goes into the page of results" page_is_filled
run "another model than the name says" trained_wrong

run "studies of the list" listed_studies
run "unknown study" fails 2 "did you mean table1?" "$MNP" repro tabel1 --out bad
run "unknown model" fails 1 "did you mean mnp?" "$MNP" repro table1 --models mpn --data rbf --out bad
run "unknown data" fails 1 "did you mean rbf?" "$MNP" repro table1 --models np --data rbff --out bad
run "unknown constant" fails 1 "noise_var" "$MNP" repro table1 --models np --data periodic:noise_vr=1 --out bad
run "unknown option" fails 2 "flow_hidden" "$MNP" repro table1 --models np --data rbf --set flow_hiden=3 --out bad
run "unknown protocol" fails 2 "strict|authors|both" "$MNP" repro table1 --protocol stric --out bad
run "unknown precision" fails 1 "did you mean fp32?" "$MNP" repro table1 --models np --data rbf --math fp23 --out bad
run "unknown flag" fails 2 "--models" "$MNP" repro table1 --model np --out bad
run "a name twice" fails 2 "np twice" "$MNP" repro table1 --models np,np --out bad
run "an empty name" fails 2 "a,b,c" "$MNP" repro table1 --models np, --out bad
run "precision auto" fails 2 "mnp train alone" "$MNP" repro table1 --models np --data rbf --device auto --math auto --out bad
run "steps and seconds" fails 2 "exclude" "$MNP" repro table1 --steps 3 --seconds 3 --out bad
run "ablation of one data set" fails 2 "one data set" "$MNP" repro ablation --data rbf,sde --out bad
run "a folder that cannot be made" fails 1 "no/such" "$MNP" repro table1 $micro --out no/such
run "a refused command leaves nothing" nothing_left
check_done
