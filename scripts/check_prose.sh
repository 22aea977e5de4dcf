#!/usr/bin/env bash
# check_prose.sh [FILE...]: looks for what scripts/prose.txt lists in pages, help texts and comments, for
# sentences of more than 30 words in pages, and for links, files and functions that do not exist. Code blocks and `code` do not count.
# Without files: everything that git knows. Each finding is one line, with the remedy.
set -euo pipefail
cd "$(dirname "$0")/.."
list=${PROSE:-scripts/prose.txt}
most=${WORDS:-30}
export LC_ALL=C.UTF-8

if [ $# -gt 0 ]; then
    mapfile -t files < <(printf '%s\n' "$@")
else
    mapfile -t files < <(git ls-files -- '*.md' '*.c' '*.h' '*.cu' '*.cuh' '*.def' 'man/*' |
        grep -vE '^(lab/.*\.md|CHANGELOG\.md|tests/)' | while read -r f; do [ ! -e "$f" ] || echo "$f"; done)
fi
[ ${#files[@]} -gt 0 ] || { echo "no files: not a git checkout" && exit 1; }
mapfile -t pages < <(printf '%s\n' "${files[@]}" | grep -E '\.md$' || true)
found=$(mktemp)
trap 'rm -f "$found" "$found".*' EXIT

# FILE:LINE:text of all files; of pages without blocks of code, `code` and addresses of links
awk 'FNR == 1 { code = 0; page = FILENAME ~ /\.md$/ }
     page && /^ *```/ { code = !code; next }
     page && code { next }
     page { gsub(/`[^`]*`/, "CODE"); gsub(/\]\([^)]*\)/, "]"); gsub(/<!--.*-->/, "") }
     { print FILENAME ":" FNR ":" $0 }' "${files[@]}" >"$found.all"
grep -E '^[^:]*\.md:' "$found.all" >"$found.docs" || true

while IFS= read -r row; do
    [[ $row == '#'* || -z $row ]] && continue
    where=${row%% | *}
    rest=${row#* | }
    pattern=${rest%% | *}
    rest=${rest#* | }
    remedy=${rest%% | *}
    grep -iP -- "^[^:]*:[0-9]+:.*$pattern" "$found.$where" | cut -c 1-160 | sed "s#\$#   -> ${remedy//[\\&#]/}#" >>"$found" || true
done <"$list"

# sentences: paragraphs and list items joined, tables and headings left out, cut at . ! ? : and ;
if [ ${#pages[@]} -gt 0 ]; then
    awk -v most="$most" '
        function flush(   n, k, parts, words) {
            n = split(text, parts, /[.!?:;]["*)]* +|[.!?:;]["*)]*$/)
            for (k = 1; k <= n; k++) {
                gsub(/^[^[:alnum:]]+|[^[:alnum:]]+$/, "", parts[k])
                words = split(parts[k], w, /[^[:alnum:]_'"'"'-]+/)
                if (words > most) print at ": a sentence of " words " words: \"" substr(parts[k], 1, 70) "...\"   -> two or three sentences"
            }
            text = ""
        }
        FNR == 1 { if (text) flush(); code = 0 }
        /^ *```/ { flush(); code = !code; next }
        /^\$\$/ { if (text) flush(); math = 1 }
        math { if (/\$\$$/ || /\$\$ *,?$/ && !/^\$\$/) math = 0; next }
        code || /^ *\|/ || /^#/ || /^    [^ ]/ && text == "" || /^ *$/ { if (text) flush(); next }
        /^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
        { if (!text) at = FILENAME ":" FNR; gsub(/`[^`]*`/, "CODE"); gsub(/\$[^$]*\$/, "MATH"); gsub(/\]\([^)]*\)/, "]"); text = text " " $0 }
        END { if (text) flush() }' "${pages[@]}" >>"$found"
fi

# links between pages: file and, within a page, its headings
anchors() { # of a page, as the hosting sites make them
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:] _-]//g; s/ /-/g'
}
for page in "${pages[@]}"; do
    grep -noE '\]\([^) ]+\)' "$page" | while IFS=: read -r line link; do
        link=${link#](}
        link=${link%)}
        case $link in http*) continue ;; esac
        file=${link%%#*}
        target=$page
        [ -z "$file" ] || target=$(dirname "$page")/$file
        if [ ! -e "$target" ]; then
            echo "$page:$line: there is no $link   -> fix the link"
        elif [[ $link == *'#'* && $target == *.md ]] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
            echo "$page:$line: there is no heading #${link#*#}   -> fix the link"
        fi
    done >>"$found" || true
done

# files that pages name in `code`, perhaps with a function (`src/run/eval.c: score_bound`), exist; foo, <x>, {a,b} are examples
folders='src|cli|lab|util|include|tests|scripts|bench|examples|man|cmake'
for page in "${pages[@]}"; do
    grep -noE "\`($folders)/[^\`]*\`" "$page" | tr -d '\`' | while IFS=: read -r line path name; do
        path=${path%% *}
        name=${name# }
        [[ $path == *foo* || $path == *'<'* || $path == *'{'* || $path == *…* ]] && continue
        if ! compgen -G "$path" >/dev/null; then
            echo "$page:$line: there is no $path   -> name the file as it is now"
        elif [[ $name =~ ^[a-z_]+$ ]] && ! grep -qw -- "$name" "$path"; then
            echo "$page:$line: there is no $name in $path   -> name the function as it is now"
        fi
    done >>"$found" || true
done

[ -s "$found" ] || exit 0
cat "$found"
exit 1
