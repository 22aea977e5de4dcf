#!/usr/bin/env bash
# test_images.sh: mnp gen geofluvial: a folder that goes on, arrays, pictures, any number of threads,
# and how bad requests end.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1
export LC_ALL=C

gen() { "$MNP" gen geofluvial --set nit=40 --quiet "$@"; }
png() { [ "$(head -c 4 "$1" | tail -c 3)" = PNG ]; }
shape() { head -c 128 "$1" | grep -aqF -- "$2"; }
# The whole JSON line; json for people goes to stderr.
json() { "$MNP" gen geofluvial --set nit=40 --json "$@" 2>/dev/null | tail -n 1; }

run "a folder" gen --images 25 --seed 3 --out a --png 1
run "its files" test -f a/train-00000.npy -a -f a/valid-00000.npy -a -f a/test-00000.npy
run "one bit a pixel" shape a/train-00000.npy "(18, 128, 16)"
run "a contact sheet" png a/sheet.png
run "pictures" png a/png/train-000000.png
run "another number of threads" gen --images 25 --seed 3 --out b --threads 3
run "the same bits" cmp a/train-00000.npy b/train-00000.npy
rm b/test-00000.npy
run "what is missing is drawn" grep -qF '"drawn":5,' <(json --images 25 --seed 3 --out b)
run "and equal" cmp a/test-00000.npy b/test-00000.npy
run "nothing is drawn twice" grep -qF '"drawn":0,' <(json --images 25 --seed 3 --out b)
run "another seed is refused" fails 1 "another seed" gen --images 25 --seed 4 --out b
run "other options are refused" fails 1 "other options" gen --images 25 --seed 3 --size 64 --out b

run "an array" gen --images 4 --seed 3 --size 32 --out a.npy --sheet s.png
run "of floats" shape a.npy "'<f4'"
run "of its shape" shape a.npy "(4, 32, 32)"
run "with a sheet" png s.png
run "grey" gen --images 1 --seed 3 --size 32 --value gray --out g.npy
run "of bytes" shape g.npy "|u1"
run "another split" gen --images 1 --seed 3 --size 32 --split test --value gray --out t.npy
run "is another river" bash -c '! cmp -s g.npy t.npy'
run "constants in the name" "$MNP" gen geofluvial:nit=40,size=32 --images 1 --seed 3 --value gray \
    --quiet --out n.npy
run "mean the same" cmp g.npy n.npy

run "no place to write" fails 2 "--out DIR" gen
run "no such option" fails 2 "Gamma" gen --set Gama=2 --out x
run "functions are no images" fails 2 "--images" gen --functions 3 --out x
run "images are no functions" fails 2 "geofluvial" "$MNP" gen sde --images 3
run "a folder holds masks" fails 2 "--value" gen --value gray --out x
run "a folder that cannot be" fails 1 "no/such/x" gen --images 1 --out no/such/x
run "nothing is left" test ! -e x -a ! -e no

# ---- images as functions
train() { "$MNP" train --preset image-small --steps 4 --batch 4 --set valid_functions=4 --quiet "$@"; }
eval_() { "$MNP" eval m.safetensors --functions 3 --samples 3 --quiet --json "$@" | tail -n 1; }
run "a small folder" gen --images 50 --size 16 --seed 3 --out c
run "trains a model" train --data images:c --out m.safetensors
run "that says what it saw" grep -aqF 'images:c' m.safetensors
run "mirrored or not is another model" train --data images:c --set mirror=off --out u.safetensors
run "for rivers it is the default" bash -c '! cmp -s <(tail -c 1000 m.safetensors) <(tail -c 1000 u.safetensors)'
run "by the same option" train --data images:c --set mirror=on --out w.safetensors
run "with the same weights" cmp <(tail -c 1000 m.safetensors) <(tail -c 1000 w.safetensors)
run "all pixels seen is another model" train --data images:c --set seen=0 --out u.safetensors
run "by default half of them are" bash -c '! cmp -s <(tail -c 1000 m.safetensors) <(tail -c 1000 u.safetensors)'
run "128 of 256" train --data images:c --set seen=128 --out w.safetensors
run "give the same weights" cmp <(tail -c 1000 m.safetensors) <(tail -c 1000 w.safetensors)
run "with importance weights" train --data images:c --set objective=iwae --set train_samples=3 --out u.safetensors
run "nothing left to score" fails 1 "max_points" train --data images:c --set seen=256 --out x
run "a process without a posterior" fails 1 "seen=5" "$MNP" train --data images:c --model gp --steps 2 --set seen=5 --quiet --out x
for context in uniform:20 uniform:40 top left center; do
    run "scored from $context" grep -qF "\"context\":\"$context\",\"noise\":0.05,\"pixels\":256" \
        <(eval_ --context "$context" --protocol authors)
done
run "strictly" grep -qF '"pixels":128' <(eval_ --context left)
run "without noise" grep -qF '"noise":0,' <(eval_ --context uniform:20 --noise 0)
run "a glance at the context" grep -qF '"pixels":128' <(eval_ --context left --seen 20)
run "a few pixels" grep -qF '"pixels":50' <(eval_ --context uniform:20 --targets 50)
# Given latents from the context alone, it does not matter which pixels come block by block.
prior() { eval_ --context uniform:20 "$@" | sed 's/.*"loglik_prior_sampling":\([^,]*\),.*/\1/'; }
run "the same in any blocks" awk -v a="$(prior --proposal 50)" -v b="$(prior)" \
    'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }'
run "another number of threads" train --data images:c --out m3.safetensors --threads 3
run "the same model" cmp m.safetensors m3.safetensors
run "a neural process" train --data images:c --model np --out np.safetensors
by_default() { # the preset of images, said in a line; other processes have theirs
    "$MNP" train --data images:c --steps 1 --batch 2 --set valid_functions=2 --out i.safetensors "$@" >err.txt 2>&1 &&
        "$MNP" info i.safetensors >info.txt
}
run "without a preset that of images" by_default
run "has its networks" grep -q 'encoder=isab.* n_inducing=32 ' info.txt
run "and says so" grep -q 'preset image: these are images' err.txt
run "a preset is taken as it is" by_default --preset image-small
run "with its networks" grep -q 'encoder=isab.* n_inducing=16 ' info.txt
run "without a word" bash -c '! grep -q "preset image" err.txt'
run "a predictor has its own" by_default --model cnp
run "an array" gen --images 12 --size 16 --seed 3 --value gray --out c.npy
run "trains a model too" train --data images:c.npy --out g.safetensors
mkdir pngs && run "pictures" gen --images 12 --size 16 --seed 3 --out d --png 12
cp d/png/*.png pngs/
run "train a model too" train --data images:pngs --out p.safetensors
run "images drawn on the way" train --data geofluvial:size=16,nit=40 --functions 9 --out q.safetensors

run "how many is asked" fails 1 "--functions" train --data geofluvial --out x
run "no such folder" fails 1 "nowhere" train --data images:nowhere --out x
mkdir empty
run "nothing in it" fails 1 ".png" train --data images:empty --out x
sed 's/"complete": true/"complete": false/' c/geofluvial.json > e.json
cp -r c e && cp e.json e/geofluvial.json
run "not all drawn yet" fails 1 "mnp gen geofluvial" train --data images:e --out x
run "no such context" fails 1 "uniform:N" "$MNP" eval m.safetensors --context middle
run "no size" fails 1 "uniform:N" "$MNP" eval m.safetensors --context uniform
run "a region of no image" fails 1 "needs images" "$MNP" eval m.safetensors --data rbf --context top --quiet
check_done
