#!/usr/bin/env bash
# limits.sh [--check]: the rows of util/limits.h as the table of SECURITY.md; with --check, whether
# the table there is this one.
set -eu
cd "$(dirname "$0")/.."

value() { # the number behind an expression or another row's name
    local text=$1
    while [[ $text =~ [A-Z_]{4,} ]]; do
        local name=${BASH_REMATCH[0]} named
        named=$(sed -n "s|^#define $name  *\(.*[^ ]\) */\*.*|\1|p" util/limits.h)
        text=${text/$name/$named}
    done
    text=${text//LL/}
    echo $((text))
}
table() {
    echo "| name | limit | of what | why |"
    echo "|---|---|---|---|"
    sed -n 's|^#define \([A-Z_]*\)  *\(.*[^ ]\) */\* \(.*\); \(.*\) \*/$|\1\t\2\t\3\t\4|p' util/limits.h |
        while IFS=$'\t' read -r name text what why; do
            echo "| \`$name\` | $(value "$text") | $what | $why |"
        done
}

if [ "${1:-}" != --check ]; then
    table
    exit
fi
[ "$(table | wc -l)" = $((2 + $(grep -c '^#define .*_[A-Z]* .*\*/$' util/limits.h))) ] ||
    { echo "util/limits.h: a row is not NAME VALUE /* what; why */" && exit 1; }
diff <(table) <(sed -n '/^| name | limit/,/^$/p' SECURITY.md | sed '/^$/d') ||
    { echo "SECURITY.md: its table is not that of util/limits.h (scripts/limits.sh prints it)" && exit 1; }
