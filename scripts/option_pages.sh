#!/usr/bin/env bash
# option_pages.sh [--check]: writes docs/user/options.md from what `mnp help` prints, so that the page says
# what the program does. --check: compares, and fails where the page is old.
set -euo pipefail
cd "$(dirname "$0")/.."
mnp=${MNP:-${BUILD:-build}/mnp}
page=${PAGE:-docs/user/options.md}
common='--seed|--threads|--json|--quiet|--help'

# "  --flag ARG     text" and "  name=TYPE     text" as rows of a table; | inside a cell needs a backslash
rows() {
    awk '{ sub(/^  /, ""); split_at = match($0, /  +/)
           name = split_at ? substr($0, 1, split_at - 1) : $0; text = split_at ? substr($0, RSTART + RLENGTH) : ""
           if (!split_at && match($0, / /)) { name = substr($0, 1, RSTART - 1); text = substr($0, RSTART + 1) }
           gsub(/\|/, "\\|", name); gsub(/\|/, "\\|", text); gsub(/</, "\\<", text); gsub(/\*/, "\\*", text)
           default_at = match(text, / \[[^\]]*\]$/)
           if (settings && default_at) printf "| `%s` | %s | `%s` |\n", name, substr(text, 1, RSTART - 1), substr(text, RSTART + 2, RLENGTH - 3)
           else if (settings) printf "| `%s` | %s | |\n", name, text
           else printf "| `%s` | %s |\n", name, text }' settings="$1"
}
section() { awk -v head="$1" '$0 == head { on = 1; next } on && !/^  / { exit } on' <<<"$help"; }
flags() { # the flags of a command, without those that all have
    help=$("$mnp" help "$1")
    local own
    own=$(grep -E '^  --' <<<"$help" | grep -vE "^  ($common)( |\$)" | awk '!seen[$1]++' || true)
    [ -n "$own" ] || return 0
    printf '\n### mnp %s\n\n| flag | what |\n|---|---|\n' "$1"
    rows 0 <<<"$own"
}
settings() { # COMMAND "heading in the help" "heading in the page"
    help=$("$mnp" help "$1")
    printf '\n### %s\n\n| name | what | default |\n|---|---|---|\n' "$3"
    section "$2" | rows 1
}
write() {
    cat <<'TOP'
# Options

Every flag and every option, as the program itself prints them. This page is written by
`scripts/option_pages.sh`; `mnp help COMMAND` shows the same text. Start with the [tutorial](tutorial.md), which needs few of them.

## Flags of every command

| flag | what |
|---|---|
TOP
    help=$("$mnp" help)
    grep -E '^  --' <<<"$help" | rows 0
    printf '\n## Flags by command\n'
    local name
    for name in $(section commands: | awk '{ print $1 }'); do [ "$name" = help ] || flags "$name"; done
    printf '\n## Options set with --set KEY=VALUE\n\nRanges stand after the text. A model file remembers its options (`mnp info M`).\n'
    while read -r name; do
        settings train "--set options of $name:" "mnp train: $name"
    done < <("$mnp" help train | sed -n 's/^--set options of \(.*\):$/\1/p')
    settings gen "options of geofluvial:" "River images: mnp gen geofluvial"
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
write >"$new"
if [ "${1:-}" = --check ]; then
    diff -u "$page" "$new" && exit 0
    echo "$page is old: run scripts/option_pages.sh" >&2
    exit 1
fi
cp "$new" "$page"
