#!/usr/bin/env bash
# test_compare_scores.sh: lab/training/compare_scores.sh tells groups of scores apart, and says when it cannot.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
compare() { printf '%s\n' "$@" >"$tmp/scores" && lab/training/compare_scores.sh "$tmp/scores" >"$tmp/out" 2>&1; }

# means 2 and 1.9, errors 0.1 each: a difference of 0.1 is within two standard errors (0.283)
spread_allows() {
    compare '# a comment' 'a f 0 1.9' 'a f 1 2.1' 'b f 0 1.8' 'b f 1 2.0 and more' &&
        grep -q 'mean 1.9000 +- 0.1000; difference -0.1000, two standard errors 0.2828: within two' "$tmp/out"
}
small_is_small() { compare 'a f 0 2' 'a f 1 2' 'b f 0 2.04' 'b f 1 2.04' && grep -q 'within 0.05' "$tmp/out"; }
apart_fails() { ! compare 'a f 0 2' 'a f 1 2' 'b f 0 1.9' 'b f 1 1.9' && grep -q APART "$tmp/out"; }
only_common_seeds() {
    compare 'a f 0 2' 'a f 1 2' 'a f 2 9' 'b f 0 2' 'b f 1 2' && grep -q '^f, 2 seeds$' "$tmp/out"
}
too_few_seeds() { ! compare 'a f 0 2' 'b f 0 2' && grep -q 'fewer than two seeds' "$tmp/out"; }
no_scores() { ! compare '# nothing' && grep -q 'no scores' "$tmp/out"; }
our_precisions_agree() { lab/training/compare_scores.sh lab/results/h200-math.txt; }

run "a difference within two standard errors" spread_allows
run "a difference below 0.05" small_is_small
run "groups that are apart give status 1" apart_fails
run "only seeds that all groups have count" only_common_seeds
run "one seed is not compared" too_few_seeds
run "a file without scores is told" no_scores
run "the measured precisions agree" our_precisions_agree
check_done
