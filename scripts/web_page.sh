#!/usr/bin/env bash
# web_page.sh: the page as a folder for any web server, in $BUILD/web: beside the module (make wasm) the
# files of web/, the models in half precision, and models.json, which says what they are.
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
page=$BUILD/web
most=3000000 # bytes of a model: a visitor waits for it
mkdir -p "$page/models"
rm -f "$page"/*.{html,css,js,svg}
cp web/* "$page/"
sed -i 's/host = "server"/host = "folder"/' "$page/host.js"

models=(mnp-monotonic mnp-rbf mnp-matern mnp-periodic mnp-convex mnp-sde geofluvial)
files=()
for model in "${models[@]}"; do
    from=models/$model.safetensors to=$page/models/$model.safetensors
    files+=("$to")
    [ "$to" -nt "$from" ] && [ "$to" -nt "$BUILD/mnp" ] && continue
    "$BUILD/mnp" shrink "$from" --out "$to" >/dev/null
    if [ "$(stat -c %s "$to")" -gt $most ]; then
        echo "web_page: $to has more than $most bytes" >&2
        exit 1
    fi
done
reply=$("$BUILD/tests/web/native" "${files[@]}" <<<models)
if [ "${reply%% *}" != 200 ]; then
    echo "web_page: $reply" >&2
    exit 1
fi
echo "${reply#* }" >"$page/models.json"
echo "the page is $page: $(stat -c %s "$page"/*.* | awk '{s += $1} END {print s}') bytes, and models of" \
    "$(stat -c %s "$page"/models/* | awk '{s += $1} END {print s}') bytes"
