#!/usr/bin/env bash
# load.sh [SECONDS] [CLIENTS]: requests per second of mnp serve beside those of the library alone on the
# same cores, and how long the slowest of a hundred waits. Needs wrk. Both take turns, ROUNDS times, so
# that a busy neighbour meets both. Compared are the seconds of a core that one request costs: on a machine
# with nothing else to do, requests per second go with one over that. MODEL is a model file of one input.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-10} clients=${2:-16}
mnp=${MNP:-${BUILD:-build}/mnp}
file=${MODEL:-models/mnp-rbf.safetensors}
rounds=${ROUNDS:-3}
threads=${THREADS:-$(nproc)}
command -v wrk >/dev/null || { echo "load.sh needs wrk: apt-get install wrk" >&2 && exit 1; }

folder=$(mktemp -d)
trap 'kill $pid 2>/dev/null; rm -rf "$folder"' EXIT
"$mnp" serve "$file" --port 0 --threads "$threads" --json --quiet >"$folder/started" &
pid=$!
until [ -s "$folder/started" ]; do sleep 0.1; done
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' "$folder/started")
MODEL=$(basename "$file" .safetensors)
export MODEL

cpu() { # seconds of a core that the server has used
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / tick }' "/proc/$pid/stat"
}
memory() { awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$pid/status"; }

for ((k = 1; k <= rounds; k++)); do
    before=$(cpu)
    row=$(wrk -t 1 -c "$clients" -d "${seconds}s" --timeout 60s --latency -s lab/serve/predict.lua "$url" |
        sed -n 's/^wrk //p')
    echo "served $before $(cpu) $(memory) $row" >>"$folder/rows"
    "$mnp" bench serve --threads "$threads" --seconds "$seconds" --model "$file" --json --quiet 2>/dev/null |
        sed 's/.*"library_per_second":\([^,]*\),"library_core_ms":\([^,]*\),.*"service_core_ms":\([^,}]*\).*/library \1 \2 \3/' \
            >>"$folder/rows"
done
# served BEFORE AFTER MB REQUESTS FAILED DURATION MEDIAN P99
awk -v clients="$clients" -v threads="$threads" '
    $1 == "served" { n += $5; bad += $6; core += $3 - $2; rate = $5 / $7; if (rate > best) best = rate
                     ratio = $9 / $8; if (!least || ratio < least) { least = ratio; median = $8; late = $9 }; mb = $4 }
    $1 == "library" { if ($2 > library) library = $2; cost += $3; json += $4; m++ }
    END { served = 1e3 * core / n
        printf "%d clients, %d threads, %d requests, %d failed\n", clients, threads, n, bad
        printf "  requests/s, best round   library %.1f  server %.1f\n", library, best
        printf "  core ms for a request    library %.3f  service %.3f  server %.3f\n", cost / m, json / m, served
        printf "  server of library        %.1f %%\n", 100 * cost / m / served
        printf "  median %.1f ms, p99 %.1f ms: %.2f times (best round)\n", 1e3 * median, 1e3 * late, least
        printf "  resident memory          %.0f MB\n", mb }' "$folder/rows"
