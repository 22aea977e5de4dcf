#!/usr/bin/env bash
# results.sh STUDY DIR ["how"]: puts the tables of a study (mnp repro STUDY --out DIR) into lab/RESULTS.md,
# between <!-- STUDY --> and <!-- /STUDY -->, and its pictures into docs/figures. "how" is one line on
# machine, commit and time. What stood there before is replaced; the rest of the page stays.
#
#   lab/results.sh table1 repro-table1 "One NVIDIA H200, fp32, commit cfed454, 4 minutes."
set -eu
cd "$(dirname "$0")/.."
# PAGE, FIGURES: another page and another folder of pictures
page=${PAGE:-lab/RESULTS.md} figures=${FIGURES:-docs/figures} most=1000000
[ $# -ge 2 ] || { echo "usage: lab/results.sh table1|table2|table3|predictive DIR [\"how\"]" >&2 && exit 2; }
study=$1 dir=$2 how=${3:-}
[ -s "$dir/$study.md" ] || { echo "$dir/$study.md is not there: mnp repro $study --out $dir" >&2 && exit 1; }
grep -q "^<!-- $study -->\$" "$page" && grep -q "^<!-- /$study -->\$" "$page" ||
    { echo "$page has no place for $study" >&2 && exit 1; }

new=$(mktemp) text=$(mktemp)
trap 'rm -f "$new" "$text"' EXIT
mkdir -p "$figures"
link=$(realpath --relative-to="$(dirname "$page")" "$figures")
{
    [ -z "$how" ] || printf '%s\n\n' "$how"
    # the study's title goes, its sections become sections of ours
    sed -e 1,2d -e 's/^##/###/' -e "s|](\([^/)]*\.svg\))|]($link/\1)|" "$dir/$study.md"
} >"$text"
for picture in "$dir"/*.svg; do
    [ -e "$picture" ] || continue
    name=$(basename "$picture")
    [ "${name#"$study"}" != "$name" ] || name=$study-$name
    if [ "$(stat -c %s "$picture")" -gt $most ]; then
        echo "$picture is too large for the documentation and stays where it is" >&2
        continue
    fi
    cp "$picture" "$figures/$name"
    grep -qF "($link/$name)" "$text" || printf '\n![%s](%s)\n' "${name%.svg}" "$link/$name" >>"$text"
done
awk -v study="$study" -v text="$text" '
    $0 == "<!-- /" study " -->" { inside = 0 }
    !inside { print }
    $0 == "<!-- " study " -->" { inside = 1; while ((getline line < text) > 0) print line }' "$page" >"$new"
cat "$new" >"$page"
echo "$page: $study from $dir"
