#!/usr/bin/env bash
# test_attend.sh: models with attend=on from the command line: every command that asks a model answers, or says in one line
# why not; what is asked in several blocks is what is asked at once.
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
printf 'id,x,y\na,0.5,0.5\nb,0.5,0.2\nnew,1,0\n' >tt.csv

small="--data rbf:points=24,context=2:10 --functions 60 --preset tiny --batch 8 --steps 30 --quiet"
number() { # FIELD FILE: the first number of that name in a JSON line
    grep -o "\"$1\":[-0-9.e+]*" "$2" | head -n 1 | cut -d: -f2
}
train() { # OUT OPTIONS...
    local out=$1
    shift
    # shellcheck disable=SC2086
    "$MNP" train $small --out "$out" --set attend=on "$@"
}
answers() { # MODEL
    "$MNP" info "$1" | grep -q 'attend=on .*train_score=rest' &&
        "$MNP" eval "$1" --functions 10 --draws 16 --condition network | grep -q 'bound with 20 samples' &&
        "$MNP" predict "$1" --context c.csv --grid -1:1:5 --out p.csv 2>p.err &&
        ! grep -q note p.err && [ "$(wc -l <p.csv)" = 6 ] && ! grep -qi nan p.csv &&
        "$MNP" predict "$1" --context cc.csv --at tt.csv --group id --out pp.csv --quiet &&
        [ "$(wc -l <pp.csv)" = 4 ] && ! grep -qi nan pp.csv &&
        "$MNP" sample "$1" --context c.csv --at t.csv -n 4 --out s.csv --quiet && [ "$(wc -l <s.csv)" = 13 ] &&
        [ "$(tail -n +2 s.csv | cut -d, -f2,3 | sort -u | wc -l)" = 12 ] && # functions, not their mean
        "$MNP" score "$1" --context c.csv --targets t.csv >/dev/null &&
        "$MNP" plot "$1" --context c.csv --out "$1.svg" --quiet && grep -q '<svg' "$1.svg"
}
laws() { # the first two hold to rounding
    "$MNP" check m.safetensors --functions 4 --json >law.json &&
        awk -v p="$(number permutation law.json)" -v m="$(number marginal law.json)" \
            'BEGIN { exit !(p < 1e-4 && m == 0) }'
}
refused() { # WORDS COMMAND...: one line
    local words=$1
    shift
    ! "$@" >out.txt 2>err.txt && [ "$(grep -c "$words" err.txt)" = 1 ] && [ "$(grep -c . err.txt)" = 1 ]
}
blocks() { # given latents from the context alone, it does not matter which pixels come block by block
    local one other
    "$MNP" gen geofluvial --images 20 --size 16 --seed 3 --out c >/dev/null 2>&1 &&
        "$MNP" train --data images:c --preset image-small --steps 3 --batch 4 --set attend=on --quiet --out i.safetensors &&
        "$MNP" eval i.safetensors --functions 3 --samples 3 --context uniform:20 --quiet --json >one.json &&
        "$MNP" eval i.safetensors --functions 3 --samples 3 --context uniform:20 --proposal 50 --quiet --json >other.json &&
        one=$(number loglik_prior_sampling one.json) other=$(number loglik_prior_sampling other.json) &&
        awk -v a="$one" -v b="$other" 'BEGIN { exit !(a != 0 && a - b < 1e-5 && b - a < 1e-5) }'
}
wells() {
    printf 'row,col,y\n2,3,1\n7,1,-1\n' >w.csv
    "$MNP" predict i.safetensors --context w.csv --grid 16x16 --out map.csv --quiet && ! grep -qi nan map.csv
}

run "mnp" train m
run "every command answers" answers m.safetensors
run "np" train n --model np --set attend_width=48 --set attend_blocks=2 --set encoder=deepset
run "too" answers n.safetensors
run "a wider start of the contexts" train f --set prefix=0.5 --set p_empty=0.5 --set objective=iwae --set train_samples=3
run "the laws" laws
run "any number of threads" train m3 --threads 3
run "the same model" cmp m.safetensors m3.safetensors
run "stopped" train m4 --stop-at 13
run "and resumed" "$MNP" train --resume m4 --quiet
run "the same bits" cmp m.safetensors m4.safetensors
run "images in blocks" blocks
run "a map" wells
run "the context is not scored" refused 'train_score=all' train x --set train_score=all
run "nor by authors" refused 'protocol strict' "$MNP" eval m.safetensors --protocol authors --functions 2
run "refine" refused '[-][-]condition network' "$MNP" predict m.safetensors --context c.csv --grid -1:1:5 --condition refine
run "exact" refused '[-][-]condition network' "$MNP" sample m.safetensors --context c.csv --at t.csv --condition exact
run "exact laws" refused '[-][-]condition network' "$MNP" check m.safetensors --functions 2 --condition exact --quiet
run "evidences" refused 'log-likelihood' "$MNP" eval m.safetensors --functions 2 --draws 8 --joint 2 --quiet
run "other models" refused 'mnp and np' train x --model gp
run "the sleep phase" refused 'sleep=1' train x --set sleep=1
check_done
