#!/usr/bin/env bash
# check_models.sh [FOLDER]: the models that are shipped are small: 4 MB each, those of river images 12 MB.
set -u
cd "$(dirname "$0")/.." || exit 1
shopt -s nullglob
bad=0
for model in "${1:-models}"/*; do
    case ${model##*/} in
    geofluvial*.safetensors) limit=12000000 ;;
    *.safetensors) limit=4000000 ;;
    *) echo "$model: only models belong here" && bad=1 && continue ;;
    esac
    size=$(stat -c %s "$model")
    [ "$size" -le $limit ] || { echo "$model has $size bytes; $limit are allowed" && bad=1; }
done
exit $bad
