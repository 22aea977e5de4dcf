#!/usr/bin/env bash
# test_condition.sh: --condition and --gradients of predict, sample, plot, score and maps: the
# default, the JSON members, warnings, and what is refused.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
models=$PWD/models
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

"$MNP" train --data monotonic --functions 100 --preset tiny --steps 3 --seed 1 --quiet --out m || exit 1
awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 12; f++) for (i = 0; i < 9; i++) {
        a = rand() * 10; b = rand() * 10; print "s" f "," a "," b "," 5 + sin(a) + b / 5 + f / 9 } }' >ore.csv
"$MNP" train --data ore.csv --function-column site --x east,north --y grade --preset tiny --steps 3 \
    --quiet --out ore || exit 1
printf 'x,y\n-1,-0.5\n0,0\n1,0.7\n' >c.csv
printf 'x,y\n' >none.csv

draw() { "$MNP" sample m.safetensors --context c.csv --grid=-2:2:5 -n 9 --out "$@"; }
member() { sed -n "s/.*\"$1\":\(\[[^]]*\]\|\"[^\"]*\"\|[^,}]*\).*/\1/p" "$2"; }

# ---- which functions
the_default() {
    draw default.csv && draw refine.csv --condition refine && draw network.csv --condition network &&
        cmp default.csv refine.csv && ! cmp -s default.csv network.csv
}
gradients_count() {
    draw few.csv --condition refine --gradients 10 --json 2>/dev/null >few.json && ! cmp -s few.csv refine.csv &&
        [ "$(member gradients few.json)" = 11 ]
}
# the same functions, whatever else is asked about, in this run or another
same_functions() {
    local kind
    for kind in refine exact; do
        "$MNP" sample m.safetensors --context c.csv --grid=-2:2:5 -n 9 --condition $kind --out a.csv &&
            "$MNP" sample m.safetensors --context c.csv --grid=-2:2:9 -n 9 --condition $kind --out b.csv || return 1
        awk -F, 'NR == FNR { y[$1, $2] = $3; next } FNR > 1 && ($1, $2) in y {
            n++; if (($3 - y[$1, $2]) ^ 2 > 1e-10) exit 1 } END { exit n != 45 }' a.csv b.csv || return 1
    done
}
any_threads() {
    local kind n
    for kind in refine exact; do
        for n in 1 2 3; do
            draw "t$n.csv" --condition $kind --threads $n --json >"t$n.json" 2>/dev/null || return 1
            sed -i 's/"seconds":[^,]*,//; s/t[123]\.csv//' "t$n.json"
        done
        cmp t1.csv t2.csv && cmp t1.csv t3.csv && cmp t1.json t2.json && cmp t1.json t3.json || return 1
    done
}
# draws that were moved towards the points fit them better
fits() {
    "$MNP" sample "$models/mnp-rbf.safetensors" --context c.csv --grid 0:1:2 -n 9 --json --out r.csv 2>note.txt >r.json || return 1
    cat note.txt r.json
    awk -v a="$(member fit_after r.json)" -v b="$(member fit_before r.json)" 'BEGIN { exit !(a > b + 1) }' &&
        ! grep -q warning note.txt && [ "$(member warnings r.json)" = '[]' ]
}
run "refine is the default" the_default
run "gradients are counted" gradients_count
run "the same functions at other places" same_functions
run "the same bits for 1, 2 and 3 threads" any_threads
run "a trained model: the fit rises, no warnings" fits

# ---- JSON
names='condition particles gradients acceptance particle_ess rhat log_evidence log_evidence_sd fit_before fit_after seconds warnings'
has_members() { # FILE
    local name
    for name in $names; do grep -q "\"$name\":" "$1" || { echo "no $name" && return 1; }; done
}
json_exact() {
    draw e.csv --condition exact --json 2>/dev/null >e.json && has_members e.json && [ "$(member condition e.json)" = '"exact"' ] && [ "$(member particles e.json)" = 64 ] &&
        [ "$(member log_evidence e.json)" != null ] && [ "$(member log_evidence_sd e.json)" != null ]
}
json_refine() {
    draw r.csv --json 2>/dev/null >r.json && has_members r.json && [ "$(member condition r.json)" = '"refine"' ] &&
        [ "$(member log_evidence r.json)" = null ] && [ "$(member particles r.json)" -ge 9 ]
}
json_network() {
    draw n.csv --condition network --json 2>/dev/null >n.json && has_members n.json &&
        [ "$(member condition n.json)" = '"network"' ] && [ "$(member gradients n.json)" = 0 ] &&
        [ "$(member acceptance n.json)" = null ] && [ "$(member warnings n.json)" = '[]' ]
}
json_plot() {
    "$MNP" plot m.safetensors --context c.csv --grid=-2:2:9 --samples 8 --json --out f.svg 2>/dev/null >f.json &&
        has_members f.json && [ "$(member condition f.json)" = '"refine"' ] &&
        "$MNP" plot m.safetensors --prior --context c.csv --grid=-2:2:9 --samples 8 --json --out f.svg 2>/dev/null >f.json &&
        grep -q '"contexts":\[{.*"condition":"network".*},{.*"condition":"refine".*}\]' f.json
}
json_predict() {
    "$MNP" predict m.safetensors --context c.csv --grid=-2:2:9 --samples 8 --condition exact --json --out p.csv \
        2>/dev/null >p.json && has_members p.json && [ "$(member condition p.json)" = '"exact"' ]
}
run "JSON: exact" json_exact
run "JSON: refine" json_refine
run "JSON: network" json_network
run "JSON: plot, one context and several" json_plot
run "JSON: predict" json_predict

# ---- where there is nothing to condition on, or no latents: no word about it
quiet_prior() {
    "$MNP" sample m.safetensors --grid=-1:1:3 -n 4 --out a.csv 2>note.txt &&
        "$MNP" sample m.safetensors --context none.csv --grid=-1:1:3 -n 4 --condition exact --out b.csv 2>>note.txt &&
        cmp a.csv b.csv && [ "$(wc -l <note.txt)" = 2 ] && ! grep -q particles note.txt
}
quiet_oracle() {
    "$MNP" train --data rbf --functions 20 --model oracle --quiet --out g &&
        "$MNP" sample g.safetensors --context c.csv --grid=-1:1:3 -n 4 --out a.csv 2>note.txt &&
        "$MNP" sample g.safetensors --context c.csv --grid=-1:1:3 -n 4 --condition exact --out b.csv 2>>note.txt &&
        cmp a.csv b.csv && [ "$(wc -l <note.txt)" = 2 ] && ! grep -q particles note.txt
}
run "an empty context is the prior" quiet_prior
run "a model without latents" quiet_oracle

# ---- several inputs and maps stay with the network, unless asked
two_inputs() {
    local q=("$MNP" predict ore.safetensors --context few.csv --samples 9 --out)
    head -n 6 ore.csv | cut -d, -f2- >few.csv
    "${q[@]}" a.csv --grid 0:10:2,0:10:2 && "${q[@]}" b.csv --grid 0:10:2,0:10:2 --condition network && cmp a.csv b.csv &&
        "${q[@]}" b.csv --grid 0:10:2,0:10:2 --condition refine && ! cmp -s a.csv b.csv
}
maps() {
    local q=("$MNP" predict ore.safetensors --context few.csv --samples 9 --grid 4x4 --json --out)
    "${q[@]}" a >a.json 2>/dev/null && "${q[@]}" b --condition network >b.json 2>/dev/null && cmp a.csv b.csv &&
        "${q[@]}" b --condition refine >b.json 2>/dev/null && ! cmp -s a.csv b.csv &&
        has_members a.json && has_members b.json && [ "$(member condition b.json)" = '"refine"' ] &&
        [ "$(member condition a.json)" = '"network"' ] && [ "$(grep -o '"seconds"' b.json | wc -l)" = 1 ]
}
run "several inputs" two_inputs
run "maps" maps

# ---- many points
points() { # N: a file of so many
    awk -v n="$1" 'BEGIN { print "x,y"; for (i = 0; i < n; i++) print -2 + 4 * i / n "," sin(i / n) }'
}
more_than_in_training() {
    local more='observed points are more than the model was trained with (50)'
    local q=("$MNP" predict "$models/mnp-rbf.safetensors" --grid 0:1:2 --samples 2 --condition network --json --out p.csv --context)
    points 51 >51.csv && points 50 >50.csv && "${q[@]}" 51.csv >p.json 2>note.txt && cat note.txt p.json &&
        grep -q "^warning: 51 $more" note.txt && [ "$(member warnings p.json)" = "[\"51 $more\"]" ] &&
        "${q[@]}" 50.csv >p.json 2>note.txt && ! grep -q warning note.txt &&
        "$MNP" plot "$models/mnp-rbf.safetensors" --context 51.csv --grid 0:1:2 --samples 2 --condition network --out p.svg 2>note.txt &&
        grep -q "^warning: 51 $more" note.txt
}
# What is said to be doubtful is in the object of every command, each line once.
same_in_json() { # LINES COMMAND...
    local line lines=$1
    shift
    "$MNP" "$@" --json >o.json 2>note.txt && "$MNP" "$@" --json --quiet >quiet.json 2>silent.txt || return 1
    cat note.txt o.json
    [ ! -s silent.txt ] && [ "$(grep -c '^warning: ' note.txt)" = "$lines" ] || return 1
    while read -r line; do
        [ "$(grep -oF "\"${line#warning: }\"" o.json | wc -l)" = 1 ] &&
            [ "$(grep -oF "\"${line#warning: }\"" quiet.json | wc -l)" = 1 ] || return 1
    done < <(grep '^warning: ' note.txt)
}
warnings_of_commands() { # more points than in training, of which one is far; and far places
    local m=$models/mnp-rbf.safetensors with=(--samples 2 --condition network)
    points 51 >doubt.csv && echo '9,0' >>doubt.csv && cp doubt.csv again.csv
    with+=(--context doubt.csv)
    same_in_json 4 predict "$m" "${with[@]}" --grid 0:50:5 --out p.csv &&
        same_in_json 4 sample "$m" "${with[@]:2}" -n 2 --grid 0:50:5 --out p.csv &&
        same_in_json 3 plot "$m" "${with[@]}" --grid 0:50:5 --out p.svg &&
        same_in_json 4 plot "$m" "${with[@]}" --grid 0:50:5 --chain --draws 2 --out p.svg &&
        same_in_json 3 plot "$m" "${with[@]}" --grid 0:50:5 --prior --out p.svg &&
        same_in_json 3 plot "$m" "${with[@]}" --grid 0:50:5 --beside network --out p.svg &&
        same_in_json 4 plot "$m" "${with[@]:0:4}" --context doubt.csv,again.csv --grid 0:50:5 --out p.svg &&
        same_in_json 2 score "$m" --context doubt.csv --targets doubt.csv --samples 2
}
warnings_of_maps() { # of the four columns of places 0, 30, 60, 90 the first lies where the curves do
    local q=(ore.safetensors --samples 2 --grid 4x4 --extent "0,90,0,9")
    printf 'east,north,grade\n50,1,5\n' >wide.csv
    same_in_json 1 predict "${q[@]}" --context few.csv --out w &&
        grep -q '^warning: 12 of 16 asked points .* east goes from 0 to 90, theirs' note.txt &&
        same_in_json 2 plot "${q[@]}" --context wide.csv --out w.svg
}
# Hours of work: that is said within seconds, and Ctrl-C ends it.
takes_long() {
    local pid
    points 3000 >many.csv
    "$MNP" predict "$models/mnp-rbf.safetensors" --context many.csv --grid 0:1:2 --samples 20000 --threads 1 --out p.csv 2>long.txt &
    pid=$!
    for _ in $(seq 600); do
        ! grep -q 'takes about' long.txt || break
        sleep 0.1
    done
    kill -INT $pid
    wait $pid
    [ $? = 130 ] && cat long.txt && grep -q '^warning: this takes about .*: ask for fewer functions, give fewer points (.*), or wait$' long.txt
}
run "more points than in training" more_than_in_training
run "warnings: the same in the object" warnings_of_commands
run "warnings: the same for maps" warnings_of_maps
run "what takes long is said early" takes_long

# ---- scores
# the evidence of a trained model is near the log-density under the process that made its data
score_evidence() {
    local q=(--context c.csv --targets t.csv --json)
    printf 'x,y\n0.2,-0.1\n-0.6,0.3\n' >t.csv
    "$MNP" score g.safetensors "${q[@]}" 2>/dev/null >truth.json &&
        "$MNP" score "$models/mnp-rbf.safetensors" "${q[@]}" --samples 64 --condition exact 2>/dev/null >s.json || return 1
    cat truth.json s.json
    has_members s.json && awk -v a="$(member loglik_evidence s.json)" -v b="$(member loglik truth.json)" \
        -v sd="$(member loglik_evidence_sd s.json)" 'BEGIN { exit !(sd > 0 && sd < 0.5 && (a - b) ^ 2 < (3 * sd) ^ 2) }'
}
# of one given function and its own targets: the mean density of the draws, as predict draws them
score_draws() {
    "$MNP" score m.safetensors --context c.csv --targets c.csv --samples 16 --condition refine --json 2>/dev/null >s.json &&
        awk -v a="$(member loglik_draws s.json)" -v b="$(member fit_after s.json)" 'BEGIN { exit !(a >= b) }' &&
        [ "$(member loglik_evidence s.json)" = null ]
}
score_network() { # as it was
    "$MNP" score m.safetensors --context c.csv --targets t.csv --json 2>/dev/null >a.json &&
        "$MNP" score m.safetensors --context c.csv --targets t.csv --condition network --json 2>/dev/null >b.json &&
        cmp a.json b.json && ! grep -q condition a.json
}
run "score: evidence against the true process" score_evidence
run "score: functions drawn" score_draws
run "score: the network" score_network

# ---- doubtful input: an answer and a warning
warned() { # TEXT CONTEXT FLAG...: said on stderr and in the JSON, and the table is whole
    local text=$1 context=$2
    shift 2
    "$MNP" sample m.safetensors --context "$context" --grid=-1:1:3 -n 9 --json --out w.csv "$@" >w.json 2>note.txt || return 1
    cat note.txt w.json
    grep -q "^warning: .*$text.*--condition network" note.txt && member warnings w.json | grep -q "$text" &&
        [ "$(wc -l <w.csv)" = 28 ] && ! grep -qi nan w.csv
}
printf 'x,y\n0,50\n0,-50\n0.5,0.2\n' >against.csv
printf 'x,y\n40,2.2\n60,-2.2\n' >far.csv
awk 'BEGIN { print "x,y"; for (i = 0; i < 400; i++) print -2 + i / 100 "," i / 400 }' >long.csv
long() {
    "$MNP" sample m.safetensors --context long.csv --grid=-1:1:3 -n 60 --json --out l.csv >l.json 2>note.txt &&
        grep -q '^note: 400 points and 60 functions are many' note.txt && member warnings l.json | grep -q 'are many' &&
        [ "$(member condition l.json)" = '"network"' ] &&
        "$MNP" sample m.safetensors --context long.csv --grid=-1:1:3 -n 1 --condition refine --gradients 5 --json \
            --out l.csv 2>/dev/null >l.json && [ "$(member condition l.json)" = '"refine"' ]
}
one_draw() {
    "$MNP" sample m.safetensors --context c.csv --grid=-1:1:3 -n 1 --out one.csv 2>note.txt && [ "$(wc -l <one.csv)" = 4 ] &&
        ! grep -q settled note.txt
}
unused() {
    draw n2.csv --condition network --gradients 9 2>note.txt && cmp n2.csv network.csv && grep -q 'not used' note.txt
}
run "points that contradict each other" warned "miss the points" against.csv
run "points far from the training data" warned "miss the points" far.csv
run "too few gradients for exact" warned "too few gradients" c.csv --condition exact --gradients 1
run "a long context: the network, said aloud" long
run "one draw" one_draw
run "gradients of the network" unused

# ---- refused in one line
run "an unknown way" fails 2 "network|refine|exact" "$MNP" sample m.safetensors --grid=0:1:2 --condition foo
for g in 0 -3 1.5 99999999 many; do
    run "gradients $g" fails 2 "--gradients" "$MNP" sample m.safetensors --context c.csv --grid=0:1:2 --gradients=$g
done
run "no draws" fails 2 "-n" "$MNP" sample m.safetensors --context c.csv --grid=0:1:2 -n 0 --condition exact
printf 'x,y\n0,1\ninf,2\n' >inf.csv
run "a number that is none" fails 1 inf.csv:3: "$MNP" sample m.safetensors --context inf.csv --grid=0:1:2 --condition exact
run "a log has no functions" fails 2 "--condition" "$MNP" plot --log m.log.csv --condition exact --out l.svg

# ---- Ctrl-C ends a long one
interrupted() {
    local pid status
    "$MNP" sample m.safetensors --context c.csv --grid=0:1:2 -n 500 --condition refine --gradients 1000000 --out never.csv 2>note.txt &
    pid=$!
    at_work $pid 0.5 && kill -INT $pid
    wait $pid
    status=$?
    cat note.txt
    [ $status = 130 ] && [ ! -e never.csv ] && grep -q 'mnp sample: interrupted' note.txt
}
run "interrupted" interrupted
check_done
