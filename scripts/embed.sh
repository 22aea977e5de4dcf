#!/usr/bin/env bash
# embed.sh FOLDER: the files of a folder as C: their bytes, and the table http_assets of
# serve/http_assets.h. Without the folder the table is empty.
set -eu
folder=${1%/}
LC_ALL=C
export LC_ALL

media_type() { # of a file's name; a file of no known type is not part of the page
    case $1 in
    */package.json) ;; # tells node alone that these are modules
    *.html) echo 'text/html; charset=utf-8' ;;
    *.css) echo 'text/css; charset=utf-8' ;;
    *.js | *.mjs) echo 'text/javascript; charset=utf-8' ;;
    *.json) echo application/json ;;
    *.webmanifest) echo application/manifest+json ;;
    *.svg) echo image/svg+xml ;;
    *.png) echo image/png ;;
    *.ico) echo image/x-icon ;;
    *.woff2) echo font/woff2 ;;
    *.wasm) echo application/wasm ;;
    *.txt) echo 'text/plain; charset=utf-8' ;;
    esac
}

echo '/* Written by scripts/embed.sh. */'
echo '#include "serve/http_assets.h"'
rows=""
count=0
if [ -d "$folder" ]; then
    while IFS= read -r file; do
        type=$(media_type "$file")
        [ -n "$type" ] || continue
        # a byte more: C has no empty arrays
        printf '\nstatic const unsigned char bytes_%d[] = {' $count
        od -An -v -tu1 "$file" | sed -e 's/  */,/g' -e 's/^,//' -e 's/$/,/'
        echo '0};'
        read -r sum size _ < <(cksum "$file")
        rows+="    {\"${file#"$folder"}\", \"$type\", \"\\\"$sum-$size\\\"\", bytes_$count, $size},"$'\n'
        count=$((count + 1))
    done < <(find "$folder" -type f | sort)
fi
printf '\nconst http_asset http_assets[] = {\n%s    {0}};\n' "$rows"
