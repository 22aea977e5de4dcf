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
run "not for training" bash -c '! "$0" train --data geofluvial --steps 1 --out m 2>/dev/null' "$MNP"
check_done
