#!/usr/bin/env bash
# test_options.sh: docs/user/options.md is what the program prints, every flag and option of it.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
tmp=${TEST_TMP:-$(mktemp -d)}
MNP=${MNP:-${BUILD:-build}/mnp}
export MNP

old() { # a page that lacks one option, or has another default, is refused
    grep -v '^| `--preset' docs/user/options.md >"$tmp/short.md" && ! PAGE=$tmp/short.md scripts/option_pages.sh --check &&
        sed 's/| `1e-3` |/| `2e-3` |/' docs/user/options.md >"$tmp/other.md" &&
        ! cmp -s "$tmp/other.md" docs/user/options.md && ! PAGE=$tmp/other.md scripts/option_pages.sh --check
}
whole() { # nothing that any help names is left out
    local name line
    "$MNP" help | awk '/^commands:/ { on = 1; next } on && !/^  / { exit } on { print $1 }' >"$tmp/commands"
    [ -s "$tmp/commands" ] || return 1
    while read -r name; do
        "$MNP" help "$name" | grep -oE '^  (--[a-z-]+|[A-Za-z_0-9]+=)' | while read -r line; do
            grep -qF -- "| \`$line" docs/user/options.md || { echo "$name: $line" && exit 1; }
        done || return 1
    done <"$tmp/commands"
}
commands_page() { # every command has its section in commands.md
    local name
    "$MNP" help | awk '/^commands:/ { on = 1; next } on && !/^  / { exit } on { print $1 }' >"$tmp/commands"
    while read -r name; do
        grep -q "^## mnp $name" docs/user/commands.md || { echo "$name has no section" && return 1; }
    done <"$tmp/commands"
}

run "the page is what the program prints" scripts/option_pages.sh --check
run "an old page is refused" old
run "every flag and option is on it" whole
run "every command is in commands.md" commands_page
check_done
