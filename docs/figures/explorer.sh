#!/usr/bin/env bash
# explorer.sh [MNP]: docs/figures/explorer.png, the page as Chromium shows it: ten points,
# refined draws, and the truth over them. The server of the page is started for it, and ended.
set -eu
cd "$(dirname "$0")"
mnp=$(realpath "${1:-../../build/mnp}")
points='-1.97,-0.65;-1.44,0.58;-1.14,0.7;-0.78,0.64;-0.27,-0.2;0.15,-0.5;0.54,-0.76;0.84,-2.2;1.14,-1.62;1.79,-0.03'
profile=$(mktemp -d)
"$mnp" serve ../../models/mnp-{rbf,matern,periodic,monotonic,convex,sde}.safetensors ../../models/geofluvial.safetensors --port 8351 --quiet &
server=$!
trap 'kill "$server"; rm -rf "$profile"' EXIT
until curl -s -o "$profile/models" http://127.0.0.1:8351/v1/models; do sleep 0.2; done
# sooner or later the picture is whole: time in the page goes on while it waits for the server
timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" --window-size=1240,930 \
    --virtual-time-budget=15000 --screenshot=explorer.png "http://127.0.0.1:8351/#model=mnp-rbf&points=$points&condition=refine&at=1.45&truth=1"
