#!/usr/bin/env bash
# test_peers.sh: the table that sets mnp beside PyTorch, and, where PyTorch is installed, that both compute the same.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
PYTHON=${PYTHON:-python3}
tmp=${TEST_TMP:-$(mktemp -d)}
export PYTHONDONTWRITEBYTECODE=1

if ! command -v "$PYTHON" >/dev/null; then
    skip "the table" "there is no $PYTHON"
    check_done
    exit
fi

# Rows of 1, 2 and 4 ms; the peer's fastest ways take 4, 1 and 16: ratios 4, 0.5 and 4, their geometric mean is 2.
row() { # NAME MATH MS
    printf '{"shape":"%s","math":"%s","model":"mnp","preset":"paper","data":"rbf","set":"","train":"","kernels":"fused",' "$1" "$2"
    printf '"error":null,"options":"kind=mnp %s","batch":1,"points":2,"seen":2,"context_hi":1,"samples":1,' "$1"
    printf '"gflop_full":1,"floor_ms":0.5,"floor_bytes_ms":0.1,"ms":1,"ms_full":%s,"mb":1}' "$3"
}
way() { # NAME WAY RESULT
    printf '{"shape":"%s","way":"%s","key":"kind=mnp %s|1|2|2|1|1",%s}\n' "$1" "$2" "$1" "$3"
}
counts_rows() {
    printf '{"shapes":[%s,%s,%s,%s]}\n' "$(row a tf32 1)" "$(row b tf32 2)" "$(row c bf16 4)" "$(row d tf32 1)" >"$tmp/mnp.json"
    {
        way a tf32:sdpa '"ms":5,"compiled":true' && way a tf32:plain '"ms":4,"compiled":true'
        way b tf32:sdpa '"ms":1,"compiled":true' && way b bf16:sdpa '"ms":0.1,"compiled":true'
        way c bf16:sdpa '"ms":17,"compiled":true' && way c tf32:sdpa '"ms":16,"compiled":false,"note":"too long"'
        way d tf32:sdpa '"error":"it broke"'
    } >"$tmp/torch.jsonl"
    "$PYTHON" lab/peers/shapes_table.py "$tmp/mnp.json" "$tmp/torch.jsonl" >"$tmp/table" &&
        grep -q '^all: at least 2 times faster in 2 of 3 rows (1 more without a peer), 1 SLOWER, least 0.50, geometric mean 2.00$' "$tmp/table" &&
        grep -q '^bf16: at least 2 times faster in 1 of 1 rows, none slower' "$tmp/table" &&
        grep -q '^c .* 4.00  tf32, sdpa, uncompiled: too long$' "$tmp/table" && grep -q '^d .*it broke$' "$tmp/table" &&
        grep -q '^a .* 4.00  tf32, plain$' "$tmp/table"
}
run "each row stands beside the fastest way that uses no fewer digits, and they are counted" counts_rows

if "$PYTHON" -c 'import torch' 2>/dev/null; then
    agrees() { "$PYTHON" "$@" >"$tmp/said" && grep -q 'they agree$' "$tmp/said"; }
    run "the chain in PyTorch scores as mnp does" agrees lab/peers/torch_chain.py --check "$MNP"
    run "cnp, tnp and convcnp in PyTorch score as mnp's do" agrees lab/peers/torch_predictors.py --check "$MNP"
    "$MNP" bench shapes --shapes iwae,image,layer_norm=on --rounds 0 --json --quiet >"$tmp/shapes.json" 2>/dev/null
    run "the packed arrangement has the loss and gradients of the plain one" agrees \
        lab/peers/torch_shapes.py --check "$tmp/shapes.json"
else
    for what in "the chain in PyTorch" "cnp, tnp and convcnp in PyTorch" "the packed arrangement"; do
        skip "$what" "$PYTHON has no torch"
    done
fi
check_done
