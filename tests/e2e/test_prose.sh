#!/usr/bin/env bash
# test_prose.sh: scripts/check_prose.sh finds what it is there for, and nothing in good prose.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
check() { scripts/check_prose.sh "$@"; }

every_pattern() { # the sentence at the end of each row has the pattern of that row
    local row
    grep -v '^#' scripts/prose.txt >"$tmp/rows" && [ -s "$tmp/rows" ] || return 1
    while IFS= read -r row; do
        printf 'A page.\n\n%s\n' "${row##* | }" >"$tmp/bad.md"
        printf '%s\n' "$row" >"$tmp/one.txt"
        ! PROSE=$tmp/one.txt check "$tmp/bad.md" >"$tmp/out" || { echo "not found: $row" && return 1; }
        grep -q '^.*bad.md:3:.*   -> ' "$tmp/out" || { cat "$tmp/out" && return 1; }
    done <"$tmp/rows"
}
comments() { # patterns for all also count in C, those for pages do not
    printf '/* The text stands behind the table. */\n' >"$tmp/a.c" && ! check "$tmp/a.c" &&
        printf '/* Measured at 5660fbc, of course. */\n' >"$tmp/a.c" && check "$tmp/a.c"
}
long_sentence() {
    { printf 'This sentence goes on' && printf ' and on%.0s' {1..20} && echo .; } >"$tmp/long.md"
    ! check "$tmp/long.md" >"$tmp/out" && grep -q 'a sentence of 44 words' "$tmp/out"
}
links() {
    printf '# A page\n\n## The end\n\n[a](none.md), [b](#the-end), [c](#no-end)\n' >"$tmp/links.md"
    ! check "$tmp/links.md" >"$tmp/out" && grep -q 'there is no none.md' "$tmp/out" &&
        grep -q 'no heading #no-end' "$tmp/out" && [ "$(wc -l <"$tmp/out")" = 2 ]
}
names() { # files and functions that a page names
    printf 'See `src/op/none.c` and `src/op/rqs.c: no_such_thing`, `src/op/rqs.c: grad_rqs`, `src/op/foo.c`.\n' >"$tmp/names.md"
    sed -i "s/grad_rqs/$(sed -n 's/^static void \([a-z_]*\)(.*/\1/p' src/op/rqs.c | head -n 1)/" "$tmp/names.md"
    ! check "$tmp/names.md" >"$tmp/out" && grep -q 'there is no src/op/none.c' "$tmp/out" &&
        grep -q 'there is no no_such_thing in src/op/rqs.c' "$tmp/out" && [ "$(wc -l <"$tmp/out")" = 2 ]
}
good() { # code is not prose
    printf '# A page\n\nShort. Plain `behind` words.\n\n```\nleft behind, 5660fbc\n```\n' >"$tmp/good.md" && check "$tmp/good.md"
}

run "every pattern of the list is found" every_pattern
run "comments are read too" comments
run "a long sentence is found" long_sentence
run "a link that leads nowhere is found" links
run "a file or function that is not there is found" names
run "good prose passes" good
check_done
