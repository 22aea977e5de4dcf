#!/usr/bin/env bash
# compare_scores.sh FILE: compares groups of trained models by their scores, family by family, over the
# seeds that all groups have. A line of the file is a group, a family, a seed and a score (what follows is
# not read; # begins a comment). Printed are mean and standard error of each group, its difference from the
# first group, and whether that is within 0.05 or within two standard errors of the difference; the exit
# status is 1 if it is neither.
#
#   lab/training/compare_scores.sh lab/results/h200-math.txt
set -eu
[ $# -eq 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
awk '
    /^#/ || NF < 4 { next }
    {
        if (!($1 in is_group)) { is_group[$1] = 1; group[++groups] = $1 }
        if (!($2 in is_family)) { is_family[$2] = 1; family[++families] = $2 }
        score[$1, $2, $3] = $4
        having[$2, $3]++
        if ($3 > last_seed) last_seed = $3
    }
    # of one group: list, seeds, mean, error (of the mean, squared)
    function gather(who, what,    s, d, sum) {
        list = ""; seeds = sum = error = 0
        for (s = 0; s <= last_seed; s++)
            if (having[what, s] == groups) {
                sum += score[who, what, s]; seeds++
                list = list sprintf(" %.4f", score[who, what, s])
            }
        mean = seeds ? sum / seeds : 0
        for (s = 0; s <= last_seed; s++)
            if (having[what, s] == groups) { d = score[who, what, s] - mean; error += d * d }
        error = seeds > 1 ? error / (seeds - 1) / seeds : 0
    }
    function verdict(apart, two) {
        if (apart <= 0.05) return "within 0.05"
        return apart <= two ? "within two standard errors" : "APART"
    }
    END {
        for (f = 1; f <= families; f++)
            for (k = 1; k <= groups; k++) {
                gather(group[k], family[f])
                if (seeds < 2) { print family[f] ": fewer than two seeds in all groups"; bad = 1; break }
                if (k == 1) { base = mean; base_error = error; print family[f] ", " seeds " seeds" }
                printf "  %-6s%s  mean %.4f +- %.4f", group[k], list, mean, sqrt(error)
                if (k == 1) { print ""; continue }
                apart = mean > base ? mean - base : base - mean
                two = 2 * sqrt(error + base_error)
                says = verdict(apart, two)
                if (says == "APART") bad = 1
                printf "; difference %+.4f, two standard errors %.4f: %s\n", mean - base, two, says
            }
        if (!families) { print "compare_scores.sh: no scores in the file" > "/dev/stderr"; bad = 2 }
        exit bad
    }' "$1"
