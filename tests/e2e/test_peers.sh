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

# A program in place of mnp: row b ends the process, row c has an error where it is not alone; row d is fine.
cat >"$tmp/mnp" <<'EOF'
#!/usr/bin/env bash
shapes=a,b,c,d
while [ $# -gt 0 ]; do
    case $1 in --shapes) shapes=$2 ;; --rounds) [ "$2" = 0 ] && list=yes ;; esac
    shift
done
IFS=, read -r -a names <<<"$shapes"
for name in "${names[@]}"; do
    [ "$name" != b ] || [ -n "${list:-}" ] || kill -SEGV $$
    error=null options=$name time='"ms":2,"ms_full":2,"mb":1,'
    [ "$name" != c ] || [ ${#names[@]} = 1 ] || error='"the GPU is gone"'
    [ -z "${list:-}" ] || error=null time=''
    rows+="{\"shape\":\"$name\",\"math\":\"fp32\",\"model\":\"mnp\",\"preset\":\"paper\",\"data\":\"rbf\",\"set\":\"\",\"train\":\"\","
    rows+="\"kernels\":\"fused\",\"error\":$error,$time\"options\":\"kind=mnp encoder=deepset $options=1 T=1 n_sab=1 conv_layers=1 enc_width=1"
    rows+=" flow_hidden=1 bins=1 heads=1\",\"batch\":1,\"points\":2,\"seen\":2,\"context_hi\":1,\"samples\":1,\"gflop_full\":1,"
    rows+="\"floor_ms\":0.5,\"floor_bytes_ms\":0.1},"
done
echo "{\"shapes\":[${rows%,}]}"
EOF
chmod +x "$tmp/mnp"
alone() {
    MNP=$tmp/mnp RESULTS=$tmp/results COMMIT=x lab/peers/compare_shapes.sh --device cpu --seconds 120 >"$tmp/said" 2>&1 &&
        grep -q '^a .* 2.0000 ' "$tmp/results/shapes-cpu.txt" && grep -q '^c .* 2.0000 ' "$tmp/results/shapes-cpu.txt" &&
        grep -q '^d .* 2.0000 ' "$tmp/results/shapes-cpu.txt" &&
        grep -q '^b .*mnp ended with status' "$tmp/results/shapes-cpu.txt" && [ -s "$tmp/results/shapes-cpu-mnp.json" ]
}
run "a row that ends mnp, or leaves the GPU unusable, takes no other row with it" alone

# The peer's processes, played by a script: one of them prints more than its result, one ends while it waits, one fails, one
# never ends.
cat >"$tmp/way" <<'EOF'
#!/usr/bin/env bash
case $* in
    *' d=1 '*) exec sleep 100 ;;
    *' b=1 '*) echo ready && exit ;;
    *' c=1 '*) echo '{"error":"it broke"}' && exit ;;
esac
echo 'a remark' && echo ready && read -r && echo '[1]' && echo '{"ms":3,"compiled":true}'
EOF
chmod +x "$tmp/way"
ways_end() {
    "$tmp/mnp" --rounds 0 >"$tmp/listed"
    start=$SECONDS
    "$PYTHON" -c 'import sys
sys.path.insert(0, "lab/peers")
import torch_shapes
sys.executable = sys.argv.pop(1)
sys.exit(torch_shapes.main())' "$tmp/way" "$tmp/listed" --ways fp32:sdpa --seconds 25 --limit 4 --out "$tmp/ways" --row-seconds 0.1 &&
        [ $((SECONDS - start)) -lt 30 ] && [ "$(wc -l <"$tmp/ways")" = 4 ] && grep -q '"a".*"ms": 3' "$tmp/ways" &&
        grep -q '"b".*ended without a word' "$tmp/ways" && grep -q '"c".*it broke' "$tmp/ways" &&
        grep -q '"d".*out of time' "$tmp/ways"
}
run "of the peer's ways each one that breaks or hangs has a line that says so, and all end in time" ways_end

if "$PYTHON" -c 'import torch' 2>/dev/null; then
    agrees() { "$PYTHON" "$@" >"$tmp/said" && grep -q 'they agree$' "$tmp/said"; }
    run "the chain in PyTorch scores as mnp does" agrees lab/peers/torch_chain.py --check "$MNP"
    run "cnp, tnp and convcnp in PyTorch score as mnp's do" agrees lab/peers/torch_predictors.py --check "$MNP"
    refuses() {
        ! "$PYTHON" -c 'import sys
sys.path.insert(0, "lab/peers")
import torch_chain
torch_chain.Shape.of({"attend": True})' 2>"$tmp/refused" && grep -q 'the peer has no attend=on' "$tmp/refused"
    }
    run "a model that the chain in PyTorch does not know has no time" refuses
    "$MNP" bench shapes --shapes iwae,image,layer_norm=on --rounds 0 --json --quiet >"$tmp/shapes.json" 2>/dev/null
    run "the packed arrangement has the loss and gradients of the plain one" agrees \
        lab/peers/torch_shapes.py --check "$tmp/shapes.json"
else
    for what in "the chain in PyTorch" "what it does not know" "cnp, tnp and convcnp in PyTorch" "the packed arrangement"; do
        skip "$what" "$PYTHON has no torch"
    done
fi
check_done
