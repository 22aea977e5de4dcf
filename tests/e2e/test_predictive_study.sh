#!/usr/bin/env bash
# test_predictive_study.sh: small versions of mnp repro predictive: tables, cells that mnp eval agrees with, differences
# from the file of functions, the short tables, joint scores of exact conditioning, kept and killed cells, gaps, errors.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
lab=$PWD/lab/predictive
cd "$tmp" || exit 1

micro="--quick --steps 12 --functions 6 --exact-functions 3 --joint-functions 2 --joint-particles 16 --contexts 2,4 --data rbf,np-eq --trained none"
few="--models truth,mnp,mnp-exact,cnp,tnp-mixture"

# shellcheck disable=SC2086
whole() {
    "$MNP" repro predictive $micro $few --out whole --json >whole.json 2>whole.err || { cat whole.err && return 1; }
    ! grep -q nan whole.err && [ "$(wc -l <whole.json)" = 1 ] && [ "$(ls whole/cells/*.json | wc -l)" = 18 ] && [ -s whole/predictive.svg ] &&
        [ -s whole/predictive-joint.svg ] && [ "$(ls whole/models/*.safetensors | wc -l)" = 6 ] &&
        [ "$(ls whole/truth/*.npy | wc -l)" = 3 ] && ! compgen -G 'whole/models/*.part*' >/dev/null &&
        grep -q 'Quick settings' whole/predictive.md && grep -q '^| 2 | truth | 6 | ' whole/predictive.md &&
        grep -q '^- \*ConvGNP (quoted)\*: 0-.01, KL to the true process. S. Markou.*, ICLR 2022; as quoted by third parties' whole/predictive.md &&
        [ "$(grep -o '"quoted": *\[.*' whole.json | grep -o '"source": *"[^"]' | wc -l)" = 14 ] &&
        [ "$(wc -l <whole/functions-rbf.csv)" = $((1 + 2 * (4 * 6 + 3))) ] &&
        [ "$(head -1 whole/functions-rbf.csv)" = model,given,function,context,targets,joint,in_turn,order_sd,marginal,crps,covered95,kl,joint_error,joint_bias,joint_hurried ] &&
        grep -q '^| 4 | mnp-exact | 3, together 2 | ' whole/predictive.md &&
        grep -q 'mnp-exact: the first 3; all targets together: the first 2, by 2 runs of 16 particles)' whole/predictive.md
}

# FILE TASK GIVEN MODEL KEY: a number of predictive.json
number() {
    python3 -c 'import json, sys
for c in json.load(open(sys.argv[1]))["cells"]:
    if [c["task"], c["given"], c["model"]] == sys.argv[2:5]: print(repr(c[sys.argv[5]]))' "$@"
}
# EVAL.json CELL... : pairs KEY_OF_CELL=KEY_OF_EVAL agree
same_numbers() {
    local file=$1 task=$2 given=$3 model=$4 pair
    shift 4
    for pair in "$@"; do
        python3 -c 'import json, math, sys
a, b = float(sys.argv[1]), json.load(open(sys.argv[2]))[sys.argv[3]]
sys.exit(not (math.isfinite(a) and abs(a - b) <= float(sys.argv[4]) * abs(b)))' \
            "$(number whole/predictive.json "$task" "$given" "$model" "${pair%%=*}")" "$file" "${pair#*=}" "${close:-1e-12}" ||
            { echo "$model on $task: $pair" && return 1; }
    done
}
eval_agrees() {
    local sizes="--data rbf --functions 6 --context 2:2 --draws 64 --samples 20 --json --quiet"
    # shellcheck disable=SC2086
    "$MNP" eval whole/models/cnp-rbf.safetensors $sizes --order random --orders 2 >cnp.json &&
        same_numbers cnp.json rbf 2 cnp marginal=marginal_mixture joint=loglik_in_turn joint_se=se_in_turn order_sd=order_sd \
            crps=crps coverage95=coverage95 crps_true=crps_true &&
        close=1e-6 same_numbers cnp.json rbf 2 cnp kl_true=kl_true &&
        "$MNP" eval whole/models/mnp-rbf.safetensors $sizes >mnp.json &&
        same_numbers mnp.json rbf 2 mnp marginal=marginal marginal_se=marginal_se joint=loglik joint_se=se crps=crps \
            marginal_short=marginal_short marginal_short_se=marginal_short_se coverage95=coverage95 &&
        "$MNP" eval whole/models/mnp-rbf.safetensors ${sizes/functions 6/functions 3} --condition exact >exact.json &&
        same_numbers exact.json rbf 2 mnp-exact marginal=marginal crps=crps marginal_short_se=marginal_short_se &&
        "$MNP" eval truth --data np-eq --functions 6 --json --quiet >truth.json &&
        same_numbers truth.json np-eq own truth marginal=marginal joint=joint joint_se=joint_se crps=crps
}
# The short tables, from every function's scores: short of the truth where that is known (rbf), else all functions' score.
# A model of some functions gets mnp's score and what it has more: as if rbf's truth were not known.
chosen() {
    python3 "$lab/choose.py" --print whole >chosen.md &&
        python3 - "$lab" <<'PYTHON'
import csv, json, re, statistics as st, sys
sys.path.insert(0, sys.argv[1])
from choose import Table
scores = {}
for r in csv.DictReader(open("whole/functions-rbf.csv")):
    if r["given"] == "2":
        scores.setdefault(r["model"], {})[r["function"]] = float(r["marginal"])
mean = lambda model, of: st.mean(scores[model][f] for f in of)
page = open("chosen.md").read()
cell = lambda model: re.search(rf"`{model}` \| \**(-?[0-9.]+)", page).group(1)
for model, own in scores.items():
    if model != "truth":
        assert cell(model) == f"{mean('truth', own) - mean(model, own):.3f}", (model, cell(model))
exact = scores["mnp-exact"]
want = mean("mnp", scores["mnp"]) + mean("mnp-exact", exact) - mean("mnp", exact)
got = Table(json.load(open("whole/predictive.json"))).score("rbf", "mnp-exact", "marginal")
assert len(exact) == 3 and abs(got - want) < 1e-9 and abs(got - mean("mnp-exact", exact)) > 1e-9, (got, want)
joint = {}
for r in csv.DictReader(open("whole/functions-rbf.csv")):
    if r["given"] == "2" and r["joint"]:
        joint.setdefault(r["model"], {})[r["function"]] = float(r["joint"])
exact = joint["mnp-exact"]
assert len(exact) == 2 and len(joint["truth"]) == len(joint["mnp"]) == 6
second = page.split("All targets together")[1]
short = st.mean(joint["truth"][f] - exact[f] for f in exact)
assert re.search(r"`mnp-exact` \| \**(-?[0-9.]+)", second).group(1) == f"{short:.3f}", (second, short)
want = st.mean(joint["mnp"].values()) + st.mean(exact[f] - joint["mnp"][f] for f in exact)
got = Table(json.load(open("whole/predictive.json"))).score("rbf", "mnp-exact", "joint")
assert abs(got - want) < 1e-9 and abs(got - st.mean(exact.values())) > 1e-9, (got, want)
assert "(3 for `mnp-exact`, 2 of them for all targets together)" in page
PYTHON
}
# All sizes by one run of the library, which is that of mnp eval with these sizes and any number of draws; "run" counts
# functions times sizes.
joint_agrees() {
    local eval="$MNP eval whole/models/mnp-TASK.safetensors --data TASK --functions 2 --draws 8 --joint 2 --joint-particles 16 --samples 1 --json --quiet"
    ${eval//TASK/rbf} --context 2,4 >joint-rbf.json && ${eval//TASK/np-eq} >joint-np-eq.json && python3 - <<'PYTHON'
import csv, glob, json, math
from statistics import mean, stdev
table = json.load(open("whole/predictive.json"))
same = lambda a, b: math.isclose(a, b, rel_tol=1e-12)
for task, sizes in (("rbf", 2), ("np-eq", 1)):
    said = json.load(open(f"joint-{task}.json"))
    cells = [json.load(open(f)) for f in glob.glob(f"whole/cells/mnp-exact-together-{task}-*.json")]
    assert len(cells) == sizes and all(c["run"] == 2 * sizes and c["functions"] == 2 for c in cells)
    assert len({c["seconds"] for c in cells}) == 1 and all("2 runs of 16 particles" in c["key"] for c in cells)
    rows = list(csv.DictReader(open(f"whole/functions-{task}.csv")))
    for row in said["by_context"] if sizes > 1 else [said]:
        given = str(row["lo"]) if sizes > 1 else "own"
        one = lambda model: next(c for c in table["cells"] if [c["task"], c["given"], c["model"]] == [task, given, model])
        cell = one("mnp-exact")
        assert cell["joint_functions"] == 2 and cell["functions"] == 3 and one("mnp")["joint_functions"] == 6
        for key, name in (("joint", "joint_exact"), ("joint_error", "joint_exact_se"), ("joint_bias", "joint_exact_bias"),
                          ("joint_hurried", "joint_hurried"), ("joint_short", "joint_short"), ("joint_short_se", "joint_short_se")):
            assert same(cell[key], row[name]), (task, given, key, cell[key], row[name])
        own = [r for r in rows if [r["model"], r["given"]] == ["mnp-exact", given]]
        assert [bool(r["joint"]) for r in own] == [True, True, False] and all(r["marginal"] for r in own)
        base = [float(r["joint"]) for r in rows if [r["model"], r["given"]] == ["mnp", given]]
        more = [float(own[i]["joint"]) - base[i] for i in range(2)]
        got = next(d for d in table["differences"] if [d["task"], d["given"], d["from"], d["to"]] == [task, given, "mnp", "mnp-exact"])
        assert got["joint_functions"] == 2 and got["functions"] == 3
        assert same(got["joint"], mean(more)) and same(got["joint_se"], stdev(more) / math.sqrt(2)), (got, more)
        shown = open("whole/predictive.md").read().split(f"## {task}\n")[1]
        line = next(l for l in shown.splitlines() if l.startswith(f"| {given} | mnp-exact |")).split(" | ")
        assert line[8].startswith(f"{mean(more):.3f} ± {got['joint_se']:.3f}"), line
PYTHON
}
# A lost cell, and one that is damaged: these sizes alone are scored again, to the same numbers. Other settings of the joint
# score leave the draws alone, and the other way round.
# shellcheck disable=SC2086
joint_kept() {
    local again="$MNP repro predictive $micro $few --out together" four='together/cells/mnp-exact-together-rbf-4-*.json'
    cp -r whole together && $again >none.txt 2>/dev/null && grep -q '^18 of them are finished' none.txt && ! grep -q '^\[' none.txt &&
        rm $four && $again >four.txt 2>/dev/null && grep -q '^17 of them are finished' four.txt && [ "$(grep -c '^\[' four.txt)" = 1 ] &&
        grep -q '^\[[0-9]*/18\] mnp-exact on rbf given 4, all together: jointly ' four.txt && grep -q '"run":2,' $four &&
        same_functions whole together && sed -i 's/"joint":\[[^]]*\]/"joint":[1]/' $four && $again >cut.txt 2>/dev/null &&
        grep -q '^17 of them are finished' cut.txt && same_functions whole together &&
        ${again/--joint-functions 2 --joint-particles 16/} >usual.txt 2>/dev/null && grep -q '^15 of them are finished' usual.txt &&
        grep -q 'all targets together: the first 3, by 2 runs of 64 particles)' together/predictive.md &&
        ! cmp -s whole/functions-rbf.csv together/functions-rbf.csv && $again --draws 8 --joint 0 >zero.txt 2>/dev/null &&
        ! grep -q 'all together' zero.txt && grep -q '^| 2 | mnp-exact | 3 | [^|]* | [^|]* | [^|]* | — | — | — | ' together/predictive.md &&
        $again --draws 8 >draws.txt 2>/dev/null && grep -q '^18 of them are finished' draws.txt &&
        python3 - <<'PYTHON'
import csv
column = lambda run: [r["joint"] for r in csv.DictReader(open(f"{run}/functions-rbf.csv")) if r["model"] == "mnp-exact"]
assert column("whole") == column("together")
PYTHON
}
differences_from_the_file() {
    python3 - <<'EOF'
import csv, json, math, statistics
table = json.load(open("whole/predictive.json"))
rows = {}
for r in csv.DictReader(open("whole/functions-rbf.csv", newline="")):
    rows[r["model"], r["given"], int(r["function"])] = r
checked = 0
for d in table["differences"]:
    if d["task"] != "rbf": continue
    both = [i for i in range(6) if (d["from"], d["given"], i) in rows and (d["to"], d["given"], i) in rows]
    off = [float(rows[d["to"], d["given"], i]["marginal"]) - float(rows[d["from"], d["given"], i]["marginal"]) for i in both]
    assert d["functions"] == len(off)
    assert math.isclose(d["marginal"], statistics.mean(off), rel_tol=1e-9, abs_tol=1e-12), d
    assert math.isclose(d["marginal_se"], statistics.stdev(off) / math.sqrt(len(off)), rel_tol=1e-9), d
    checked += 1
assert checked == 2 * 10, checked
EOF
}
gaps() { # what is not there is named, and what the truth does not say is no number
    # shellcheck disable=SC2086
    "$MNP" train --data monotonic --model cnp --preset tiny --functions 50 --steps 2 --out whole/models/cnp-monotonic --quiet &&
        "$MNP" repro predictive --models truth,tnp,cnp --trained whole/models --functions 3 --contexts 2 --data rbf,monotonic --out gaps --quiet &&
        grep -q '^- no tnp: there is no whole/models/tnp-rbf.safetensors$' gaps/predictive.md &&
        grep -q '^| 2 | cnp | 3 | ' gaps/predictive.md && ! ls gaps/models/*.safetensors 2>/dev/null &&
        grep -q '"state": "absent"' gaps/predictive.json &&
        [ "$(number gaps/predictive.json monotonic 2 cnp marginal_short)" = None ] &&
        [ "$(number gaps/predictive.json monotonic 2 cnp marginal)" != None ] &&
        "$MNP" repro predictive --models truth,tnp,cnp --trained whole/models --functions 3 --contexts 2 --data rbf,monotonic \
            --out gaps 2>gaps.err | grep -q '^tnp is left out of 2 of 2 tasks: there is no whole/models/tnp-rbf.safetensors$' &&
        mkdir -p truth && "$MNP" repro predictive --models truth --functions 3 --contexts 2 --data rbf --out lone --quiet &&
        [ "$(ls lone/cells/*.json | wc -l)" = 1 ] # the row, not the folder of its name
}
named_files() { # rows of files stand on their own tasks alone
    "$MNP" repro predictive --quick --models whole/models/cnp-rbf.safetensors,cnp --trained whole/models --functions 3 --contexts 2 \
        --data rbf,np-eq --out named --quiet &&
        [ "$(number named/predictive.json rbf 2 cnp-rbf marginal)" = "$(number named/predictive.json rbf 2 cnp marginal)" ] &&
        grep -q '^- no cnp-rbf: whole/models/cnp-rbf.safetensors was trained on rbf$' named/predictive.md
}
same_functions() {
    for task in rbf np-eq; do cmp "$1/functions-$task.csv" "$2/functions-$task.csv" || return; done
}
# shellcheck disable=SC2086
kept() { # a lost cell and a damaged truth are found again
    cp -r whole kept && rm kept/cells/cnp-rbf-2-*.json kept/cells/truth-*.json && head -c 200 whole/truth/np-eq-0-*.npy >cut.npy &&
        mv cut.npy "$(ls kept/truth/np-eq-0-*.npy)" && fewer_targets kept/truth/rbf-2-*.npy &&
        timeout 60 "$MNP" repro predictive $micro $few --out kept >kept.txt 2>&1 && grep -q '14 of them are finished' kept.txt &&
        ! grep -q nan kept.txt && same_functions whole kept && cmp whole/truth/np-eq-0-*.npy kept/truth/np-eq-0-*.npy &&
        cmp whole/truth/rbf-2-*.npy kept/truth/rbf-2-*.npy
}
# Networks score otherwise in another precision, the truth does not; the device is no matter. What was kept before the
# key said so is scored again.
# shellcheck disable=SC2086
precisions() {
    local again
    read -ra again <<<"$MNP repro predictive $micro $few --out other"
    cp -r whole other && "${again[@]}" --device auto >auto.txt 2>&1 && grep -q '^18 of them are finished' auto.txt || return 1
    # without a GPU the other cells fail
    "$MNP" repro predictive ${micro/none/whole/models} $few --out other --device cuda --math tf32 >tf32.txt 2>&1
    cat tf32.txt
    grep -q '^3 of them are finished' tf32.txt && grep -q '"key":"mnp .*, in fp32; rbf, ' whole/cells/mnp-rbf-2-*.json || return 1
    sed -i 's/, in fp32; /; /; s/"marginal":\[[^]]*\]/"marginal":[1,1,1,1,1,1]/' other/cells/cnp-rbf-2-*.json
    "${again[@]}" >older.txt 2>&1 && grep -q '^17 of them are finished' older.txt && same_functions whole other
}
# A model that was trained here notes the precision. Older notes end before it: those are of fp32.
# shellcheck disable=SC2086
noted_precision() { # the notes are changed without a change of length
    local one="$MNP repro predictive ${micro/rbf,np-eq/rbf} --models cnp --out noted" file=noted/models/cnp-rbf.safetensors
    mkdir -p noted/models && cp whole/models/cnp-rbf.safetensors $file && grep -q '; seed 0; in fp32"' $file && $one --quiet || return 1
    fails 1 'seed 0; in fp32): take another' $one --device cuda --math tf32 || return 1
    sed -i 's/; in fp32"/; in tf32"/' $file && fails 1 'seed 0; in tf32): take another' $one --quiet || return 1
    sed -i 's/; in tf32"/"         /' $file && $one --quiet && fails 1 'seed 0): take another' $one --device cuda --math tf32
}
fewer_targets() { # than none, of the first function
    python3 -c 'import struct, sys
bytes = bytearray(open(sys.argv[1], "rb").read())
struct.pack_into("<d", bytes, 10 + struct.unpack_from("<H", bytes, 8)[0] + 2 * 8, -1.0)
open(sys.argv[1], "wb").write(bytes)' "$1"
}
# shellcheck disable=SC2086
killed() { # at any place: in training or in a cell
    local pid
    mkdir -p rude
    for nap in 0.3 0.6 1 1.5; do
        "$MNP" repro predictive $micro $few --out rude --quiet 2>/dev/null &
        pid=$!
        sleep $nap
        kill -KILL $pid 2>/dev/null
        wait $pid 2>/dev/null
    done
    "$MNP" repro predictive $micro $few --out rude --quiet && same_functions whole rude && cmp whole/models/tnp-mixture-rbf.safetensors \
        rude/models/tnp-mixture-rbf.safetensors
}
# shellcheck disable=SC2086
interrupted() { # while functions are drawn for a training: one line
    local pid status
    "$MNP" repro predictive --quick --steps 12 --functions 4 --data tnp-rbf --models cnp --trained none --train-functions 1000000 --out stop \
        --quiet 2>stop.err &
    pid=$!
    at_work $pid 1 && kill -INT $pid
    wait $pid
    status=$?
    cat stop.err
    [ $status = 130 ] && [ "$(wc -l <stop.err)" = 1 ]
}
# shellcheck disable=SC2086
any_threads() {
    mkdir -p one && cp -r whole/models one &&
        "$MNP" repro predictive $micro $few --out one --threads 1 --quiet && same_functions one whole
}
# shellcheck disable=SC2086
refuses() {
    fails 2 "there is no row 'cpn'; did you mean cnp" "$MNP" repro predictive --quick --models truth,cpn --out no &&
        fails 2 '--contexts wants at most 8 rising sizes' "$MNP" repro predictive --quick --contexts 5,3 --out no &&
        fails 2 '--contexts wants at most 8 rising sizes' "$MNP" repro predictive --quick --contexts few --out no &&
        fails 2 '--joint wants 2 runs or more' "$MNP" repro predictive --quick --joint 1 --out no &&
        fails 2 '--seeds is not for predictive' "$MNP" repro predictive --quick --seeds 2 --out no &&
        fails 2 'both name a folder' "$MNP" repro predictive --models whole --trained whole --out no &&
        printf 'x,y\n1,2\n2,3\n' >a.csv && fails 2 'a.csv is no built-in family' "$MNP" repro predictive --quick --data a.csv --out no &&
        mkdir -p wrong && cp whole/models/cnp-rbf.safetensors wrong/tnp-rbf.safetensors &&
        fails 1 'wrong/tnp-rbf.safetensors is no tnp: kind=cnp' "$MNP" repro predictive --models tnp --trained wrong --data rbf --out no2 --quiet &&
        cp whole/models/tnp-mixture-rbf.safetensors wrong/tnp-rbf.safetensors &&
        fails 1 'has not head=normal' "$MNP" repro predictive --models tnp --trained wrong --data rbf --out no2 --quiet &&
        cp whole/models/cnp-np-eq.safetensors wrong/cnp-rbf.safetensors &&
        fails 1 'was trained on np-eq, not on rbf' "$MNP" repro predictive --models cnp --trained wrong --data rbf --out no2 --quiet &&
        fails 2 'two rows that are called cnp-rbf' "$MNP" repro predictive --models wrong/cnp-rbf.safetensors,whole/models/cnp-rbf.safetensors --out no &&
        fails 2 'contexts 128 leaves no target of rbf' "$MNP" repro predictive --quick --contexts 3,128 --data rbf --out no &&
        fails 1 'no nowhere/cnp-rbf.safetensors, and no other model' "$MNP" repro predictive --models truth,cnp --trained nowhere --data rbf --out no2 --quiet &&
        fails 1 'whole/models/cnp-rbf.safetensors was trained otherwise (preset tiny' \
            "$MNP" repro predictive ${micro/steps 12/steps 13} --models cnp --out whole --quiet &&
        fails 1 'none.safetensors' "$MNP" repro predictive --models none.safetensors --data rbf --out no2 --quiet && [ ! -e no ]
}

run "tables, pictures, functions" whole
run "cells are what mnp eval says" eval_agrees
run "joint scores are what mnp eval says" joint_agrees
run "kept joint scores" joint_kept
run "differences from the file of functions" differences_from_the_file
run "the short tables likewise" chosen
run "gaps are named" gaps
run "files as rows" named_files
run "kept cells" kept
run "another precision" precisions
run "models of another precision" noted_precision
run "killed and resumed" killed
run "interrupted" interrupted
run "any number of threads" any_threads
run "refusals" refuses
check_done
