#!/usr/bin/env bash
# test_serve_load.sh: mnp serve for a long time: many clients that ask, clients that go away, and noise, all
# at once for SOAK_SECONDS (600), while the memory stays what it was after the first tenth. Then schemathesis
# (from PyPI, in a virtual environment) asks what the OpenAPI document allows, and what it does not.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
BUILD=${BUILD:-build}
MNP=${MNP:-$BUILD/mnp}
dir=${TEST_TMP:-$(mktemp -d)}
soak=${SOAK_SECONDS:-600}
model=models/mnp-monotonic.safetensors
pid=

start() { # FLAG...: a server, its process in pid, its address in url
    "$MNP" serve "$model" --port 0 --json --quiet "$@" >"$dir/started" 2>"$dir/errors" &
    pid=$!
    local k
    for ((k = 0; k < 300; k++)); do [ ! -s "$dir/started" ] || break; sleep 0.1; done
    url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$dir/started")
    [ -n "$url" ]
}
stop() { # it ends well
    kill "$pid" && wait "$pid"
}
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }
files() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }

# Opens connections that send noise, half of a request, or nothing, and go away.
hostile() {
    local port=${url%/} k=0 until=$((SECONDS + $1))
    port=${port##*:}
    while [ $SECONDS -lt $until ]; do
        k=$((k + 1))
        (
            exec 3<>"/dev/tcp/127.0.0.1/$port" || exit
            case $((k % 4)) in
            0) head -c 3000 /dev/urandom >&3 ;;
            1) printf 'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\nContent-Type: application/json\r\n\r\n{"model' >&3 ;;
            2) printf 'GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n' >&3 ;;
            3) body='{"model":"mnp-monotonic","grid":[-2,2,200],"condition":"exact","samples":200}'
                printf 'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\n\r\n%s' ${#body} "$body" >&3
                sleep 0.2 ;;
            esac
            sleep 0.1
        ) 2>/dev/null
    done
}
soaks() {
    local early late open
    start --threads "$(nproc)" --receive-limit 2 || return 1
    MODEL=mnp-monotonic wrk -t 1 -c 16 -d "$((soak / 10))s" --timeout 60s -s lab/serve/predict.lua "$url" >"$dir/warm" &
    local load=$!
    hostile $((soak / 10))
    wait $load
    early=$(memory)
    MODEL=mnp-monotonic wrk -t 1 -c 16 -d "${soak}s" --timeout 60s --latency -s lab/serve/predict.lua "$url" >"$dir/load" &
    load=$!
    hostile "$soak"
    wait $load
    sleep 4 # the last ones are cut off
    late=$(memory) open=$(files)
    grep -E '^wrk|Requests/sec' "$dir/load"
    echo "memory $early kB after $((soak / 10)) s, $late kB after $soak s more; $open files"
    stop && [ "$late" -lt $((early + early / 10 + 4096)) ] && [ "$open" -lt 40 ] &&
        awk '/^wrk/ { good = $2 > 0 && $3 == 0 } END { exit !good }' "$dir/load"
}
# Names that exist and small sizes, so that most requests are computed, and none runs into the time limit.
narrow='
import json, sys
document = json.load(sys.stdin)
for path, calls in document["paths"].items():
    body = calls.get("post", {}).get("requestBody")
    if not body: continue
    fields = body["content"]["application/json"]["schema"]["properties"]
    fields["model"] = {"enum": ["mnp-monotonic"]}
    for name, most in (("samples", 16), ("draws", 16), ("gradients", 8), ("rows", 16), ("cols", 16)):
        if name in fields: fields[name]["maximum"] = most
json.dump(document, sys.stdout)
'
fetch='import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1]).read())'
follows_its_description() {
    start || return 1
    python3 -c "$fetch" "${url}v1/openapi.json" | python3 -c "$narrow" >"$dir/openapi.json" || return 1
    local status document
    for document in "${url}v1/openapi.json" "$dir/openapi.json"; do
        (cd "$dir" && "$dir/venv/bin/schemathesis" run "$document" --url "${url%/}" --max-examples "${EXAMPLES:-50}" \
            --checks not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance \
            --request-timeout 60 --suppress-health-check all --no-color)
        status=$?
        [ $status = 0 ] || break
    done
    stop && [ $status = 0 ]
}

start && stop
if grep -q 'the server needs' "$dir/errors"; then
    skip "the server" "$(cat "$dir/errors")"
else
    if command -v wrk >/dev/null; then
        run "memory stays under load and noise" soaks
    else
        skip "memory stays under load and noise" "wrk is not installed"
    fi
    if python3 -m venv "$dir/venv" && "$dir/venv/bin/pip" install --quiet 'schemathesis>=4,<5'; then
        run "it does what its description says" follows_its_description
    else
        skip "it does what its description says" "schemathesis could not be installed"
    fi
fi
check_done
