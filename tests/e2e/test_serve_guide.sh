#!/usr/bin/env bash
# test_serve_guide.sh: what docs/user/serve.md shows works: its first command starts a server, and the
# commands that call it get numbers; only the port is another one.
set -u
# shellcheck source=tests/check.sh
. tests/check.sh
top=$PWD
tmp=${TEST_TMP:-$(mktemp -d)}
MNP=${MNP:-$PWD/build/mnp}
PATH=$(dirname "$MNP"):$PATH

# Its blocks, as files 1, 2, ...
awk -v dir="$tmp" '/^```sh$/ { file = dir "/" ++n; next } /^```/ { file = "" } file { print > file }' docs/user/serve.md
start() {
    cd "$top" && read -r line <"$tmp/1" && [[ $line == "mnp serve models/"* ]] || return 1
    # shellcheck disable=SC2086 # words
    $line --port 0 --json --quiet >"$tmp/started" 2>"$tmp/errors" &
    echo $! >"$tmp/pid"
    local k
    for ((k = 0; k < 300; k++)); do [ ! -s "$tmp/started" ] || break; sleep 0.1; done
    sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$tmp/started" >"$tmp/url"
    [ -s "$tmp/url" ]
}
calls() { # BLOCK PATTERN: it works, and prints this
    sed "s#http://127.0.0.1:8350/#$(cat "$tmp/url")#" "$tmp/$1" >"$tmp/block" &&
        bash -euo pipefail "$tmp/block" >"$tmp/out" && cat "$tmp/out" && grep -q "$2" "$tmp/out"
}
ends() { # wait knows no processes of other shells
    kill "$(cat "$tmp/pid")"
    local k
    for ((k = 0; k < 300; k++)); do
        kill -0 "$(cat "$tmp/pid")" 2>/dev/null || return 0
        sleep 0.1
    done
    return 1
}

start
if grep -q 'the server needs' "$tmp/errors"; then
    skip "the guide to the server" "$(cat "$tmp/errors")"
else
    run "the first command starts a server" test -s "$tmp/url"
    if command -v curl >/dev/null; then
        run "curl" calls 2 '"mean":\['
    else
        skip curl "it is not installed"
    fi
    if command -v python3 >/dev/null; then
        run "Python" calls 3 '^\[-\{0,1\}[0-9]'
    else
        skip Python "it is not installed"
    fi
    run "and it ends" ends
fi
check_done
