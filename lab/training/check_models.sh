#!/usr/bin/env bash
# check_models.sh [FOLDER]: the models that are shipped are small: 4 MB each, those of river images
# 12 MB, all of them 40 MB; one seed of each.
set -u
cd "$(dirname "$0")/../.." || exit 1
shopt -s nullglob
bad=0 all=0 most=40000000
for model in "${1:-models}"/*; do
    case ${model##*/} in
    *-s[0-9].safetensors) echo "$model: one seed of each model is shipped" && bad=1 && continue ;;
    geofluvial*.safetensors) limit=12000000 ;;
    *.safetensors) limit=4000000 ;;
    *) echo "$model: only models belong here" && bad=1 && continue ;;
    esac
    size=$(stat -c %s "$model")
    all=$((all + size))
    [ "$size" -le $limit ] || { echo "$model has $size bytes; $limit are allowed" && bad=1; }
done
[ $all -le $most ] || { echo "${1:-models} has $all bytes; $most are allowed" && bad=1; }
exit $bad
