#!/usr/bin/env bash
# test_mpi.sh: one command on several ranks of MPI: the same bits, shared work, refusals and faults.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
object=${BUILD:-$PWD/build}/libmnp_mpi.so
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

tiny="--data monotonic --functions 60 --preset tiny --batch 20 --seed 3 --quiet --set valid_functions=10 --threads 1"
train() { "$MNP" train "$@"; }

# The launcher's variables without MPI: what a build without it says.
without_mpi() {
    mkdir -p bare && cp "$MNP" bare/ && cd bare &&
        OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 \
            fails 1 "started as 3 ranks, but this build cannot use MPI: there is no libmnp_mpi.so" \
            ./mnp train $tiny --steps 2 --out x &&
        OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 ./mnp train $tiny --steps 2 --out x
}
run "without MPI it says so, and one rank needs none" without_mpi

if ! command -v mpirun >/dev/null 2>&1 || [ ! -f "$object" ]; then
    skip "2 and 3 ranks" "there is no mpirun, or no libmnp_mpi.so (make setup installs Open MPI)"
    check_done
    exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none # several jobs share the cores of a test machine
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=self,vader,tcp
ranks() { timeout 120 mpirun -n "$1" "$MNP" "${@:2}"; }
if ! ranks 2 gen rbf --functions 2 --quiet --out probe.csv >probe.txt 2>&1; then
    skip "2 and 3 ranks" "mpirun does not work here: $(head -n 1 probe.txt)"
    check_done
    exit
fi

same_run() { cmp "$1.safetensors" "$2.safetensors" && cmp "$1.last.safetensors" "$2.last.safetensors" &&
    cmp "$1.train.safetensors" "$2.train.safetensors"; }
same_bits() {
    train $tiny --steps 12 --out one || return 1
    for n in 2 3 4; do ranks $n train $tiny --steps 12 --out r$n && same_run one r$n || return 1; done
}
other_count_resumes() {
    ranks 3 train $tiny --steps 12 --stop-at 5 --out part && ranks 2 train --resume part --quiet && same_run one part
}
fast_is_close() { # another order of additions: the same to rounding, and the same on every rank
    ranks 2 train $tiny --steps 12 --reduce fast --out fast && ! cmp -s one.last.safetensors fast.last.safetensors &&
        awk -F, 'NR == FNR {a[FNR] = $2; next} FNR > 1 && ($2 - a[FNR]) ^ 2 > 1e-6 {exit 1}' one.log.csv fast.log.csv
}
fresh_and_starts() { # fresh functions are drawn by all ranks; a gp compares several starts
    local some="--data rbf --functions 20 --batch 4 --seed 3 --quiet --set valid_functions=4 --threads 1 --steps 8"
    train --preset tiny $some --fresh --out f1 && ranks 3 train --preset tiny $some --fresh --out f3 && same_run f1 f3
}
eval_is_shared() {
    "$MNP" eval one.safetensors --functions 50 --json --quiet >e1.json &&
        ranks 3 eval one.safetensors --functions 50 --json --quiet >e3.json && cmp e1.json e3.json
}
gen_is_shared() {
    "$MNP" gen rbf --functions 30 --quiet --out g1.csv && ranks 3 gen rbf --functions 30 --quiet --out g3.csv &&
        cmp g1.csv g3.csv &&
        "$MNP" gen geofluvial --images 4 --size 16 --quiet --out i1 && ranks 2 gen geofluvial --images 4 --size 16 --quiet --out i2 &&
        diff -r i1 i2
}
repro_is_shared() {
    local some="repro table1 --quick --models np,oracle --data rbf,matern --steps 4 --functions 8 --train-functions 20 --quiet"
    "$MNP" $some --out q1 && ranks 3 $some --out q2 && cmp q1/table1.svg q2/table1.svg &&
        for f in q1/cells/*.safetensors; do cmp "$f" "q2/${f#q1/}" || return 1; done
}
table3_is_shared() {
    local some="repro table3 --quick --images r.npy --functions 2 --samples 2 --steps 2 --batch 2 --quiet"
    "$MNP" gen geofluvial --set nit=40 --images 30 --size 16 --seed 3 --out r.npy --quiet && "$MNP" $some --out t1 &&
        ranks 2 $some --out t2 && cmp t1/table3.md t2/table3.md && cmp t1/spread.svg t2/spread.svg
}
one_command_of_many() { # a command that does not spread is run by one rank
    ranks 3 info one.safetensors --json --quiet >info.json && [ "$(wc -l <info.json)" = 1 ]
}

# ---- faults
one_line() { # exit status of mpirun is not 0, and exactly one line is ours, with this text
    local text=$1
    shift
    "$@" >fault.txt 2>&1 && return 1
    cat fault.txt
    [ "$(grep -c '^mnp ' fault.txt)" = 1 ] && grep '^mnp ' fault.txt | grep -qF -- "$text"
}
other_seed() { timeout 60 mpirun -n 1 "$MNP" train $tiny --steps 4 --out odd : -n 1 "$MNP" train ${tiny/seed 3/seed 4} --steps 4 --out odd; }
other_data() {
    "$MNP" gen rbf --functions 20 --out a.csv --quiet && sed '40s/,[^,]*$/,0.123/' a.csv >b.csv &&
        mkdir -p A B && cp a.csv A/d.csv && cp b.csv B/d.csv || return 0
    local some="train --data d.csv --preset tiny --steps 4 --quiet --threads 1 --out odd"
    timeout 60 mpirun -wdir A -n 1 "$MNP" $some : -wdir B -n 1 "$MNP" $some
}
other_program() {
    cp "$MNP" mnp2 && cp "$object" . && printf ' ' >>mnp2
    timeout 60 mpirun -n 1 "$MNP" train $tiny --steps 4 --out odd : -n 1 ./mnp2 train $tiny --steps 4 --out odd
}
fails_there() { mkdir -p C; timeout 60 mpirun -n 1 "$MNP" train --data "$tmp/a.csv" $short : -wdir C -n 1 "$MNP" train --data "$tmp/none.csv" $short; }
short="--preset tiny --steps 4 --quiet --threads 1 --out odd"

# The processes of a job: the children of its mpirun.
start() { # ranks args...: in the background; $job and $pids
    mpirun -n "$1" "$MNP" "${@:2}" >job.txt 2>&1 &
    job=$!
    local end=$((SECONDS + 60)) # a busy machine takes its time
    while [ $SECONDS -lt $end ]; do
        mapfile -t pids < <(children_of $job)
        [ ${#pids[@]} -ge "$1" ] && return 0
        kill -0 $job 2>/dev/null || break
        sleep 0.02
    done
    echo "the job did not start:" && cat job.txt
    kill -9 "${pids[@]}" $job 2>/dev/null
    return 1
}
wait_for() { timeout 60 sh -c "until [ -e $1 ]; do sleep 0.02; done" || { echo "no $1" && cat job.txt && return 1; }; }
long="--data monotonic --functions 400 --preset tiny --batch 160 --seed 3 --quiet --set valid_functions=10 --threads 1"
hung() {
    start 3 train $long --steps 3000 --rank-timeout 5 --out hung || return 1
    wait_for hung.safetensors.lock && sleep 1 # it trains
    kill -STOP "${pids[1]}"
    timeout 60 tail --pid=$job -f /dev/null || kill -9 "${pids[@]}"
    wait $job
    local status=$?
    kill -CONT "${pids[1]}" 2>/dev/null
    cat job.txt
    [ $status != 0 ] && [ "$(grep -c '^mnp ' job.txt)" = 1 ] && grep -q '^mnp train: rank 1 has been silent for' job.txt &&
        "$MNP" info hung.last.safetensors --quiet
}
# kill -9 of a random rank at a random moment: it ends, what is there can be loaded, and going on from
# it gives the bits of a run that was never disturbed
RANDOM=7
killed() {
    local all=$1 k victim
    train $long --steps 24 --out calm && train $long --steps 24 --stop-at 2 --out base || return 1
    for k in $(seq "$all"); do
        for f in base*; do cp "$f" "dead${f#base}"; done
        start 3 train --resume dead --quiet --threads 1 || return 1
        wait_for dead.safetensors.lock # MPI itself waits for ever for a rank that is lost while it starts
        sleep "$(awk -v r=$RANDOM 'BEGIN {print 1.6 * r / 32768}')"
        victim=$((RANDOM % 3))
        kill -9 "${pids[$victim]}" 2>/dev/null
        timeout 30 tail --pid=$job -f /dev/null || { echo "$k: does not end" && kill -9 $job && return 1; }
        wait $job
        echo "$k: rank $victim, exit $?, $(grep -a '^mnp' job.txt | head -n 1)"
        for f in dead.safetensors dead.last.safetensors; do "$MNP" info $f --quiet || return 1; done
        train --resume dead --quiet && same_run calm dead || return 1
    done
}

# rank 0 is lost, before it saved anything and after: what the others say is what the files are
lost_rank_0() { # name, seconds between checkpoints, the file to wait for
    start 3 train $long --steps 3000 --rank-timeout 5 --checkpoint "$2" --out "$1" || return 1
    wait_for "$3" && sleep 1
    kill -9 "${pids[0]}"
    timeout 60 tail --pid=$job -f /dev/null
    wait $job
    local status=$?
    cat job.txt
    [ $status != 0 ] && [ "$(grep -c '^mnp ' job.txt)" = 1 ]
}
lost_before() {
    lost_rank_0 early 60 early.safetensors.lock && grep -q 'nothing was saved yet: start it again$' job.txt && ! grep -q -- --resume job.txt &&
        [ ! -e early.train.safetensors ]
}
lost_after() {
    lost_rank_0 late 0 late.train.safetensors && grep -q 'rank 0 had saved a state, go on with: mnp train --resume late.safetensors$' job.txt &&
        train --resume late --stop-at 40 --quiet
}
# an earlier run's state is not the state of this one
lost_over_another() {
    train ${long/seed 3/seed 5} --steps 30 --stop-at 3 --out over && lost_rank_0 over 60 over.safetensors.lock &&
        grep -q 'nothing was saved yet: start it again$' job.txt && train --resume over --stop-at 4 --quiet
}
stopped() { # SIGTERM to all ranks, where every step is validated: no validation and no row is left out
    local k
    train $long --steps 24 --out calm || return 1
    for k in 1 2 3; do
        rm -f term.*
        start 2 train $long --steps 24 --out term || return 1
        wait_for term.safetensors.lock && sleep 0.$((3 * k))
        kill -TERM "${pids[@]}"
        wait $job
        cat job.txt
        if [ -e term.train.safetensors ]; then train --resume term --quiet; else train $long --steps 24 --out term; fi || return 1
        same_run calm term && cut -d, -f1-6 calm.log.csv >calm.rows && cut -d, -f1-6 term.log.csv | cmp calm.rows - || return 1
    done
}
held() { # one job at a time
    start 2 train $long --steps 3000 --out held || return 1
    wait_for held.safetensors.lock
    one_line "held.safetensors is being written by another run" ranks 2 train $tiny --steps 2 --out held
    local rc=$?
    kill -TERM $job
    wait $job
    return $rc
}

run "2, 3 and 4 ranks give the bits of one process" same_bits
run "a run of 3 ranks goes on with 2" other_count_resumes
run "--reduce fast is the same to rounding" fast_is_close
run "fresh functions on 3 ranks" fresh_and_starts
run "eval on 3 ranks" eval_is_shared
run "gen on 3 ranks" gen_is_shared
run "repro: cells on 3 ranks" repro_is_shared
run "repro table3: cells on 2 ranks" table3_is_shared
run "other commands run once" one_command_of_many
run "a rank with another seed is refused" one_line "rank 1 on" other_seed
run "a rank with other data is refused" one_line "another training data" other_data
run "another build is refused" one_line "another version of mnp" other_program
run "an error of one rank is told once, with its number" one_line "rank 1: " fails_there
run "an error of all ranks is told once" one_line "cannot open" ranks 3 train --data none.csv $short
run "too many ranks" one_line "--set slots=3" ranks 3 train $tiny --steps 2 --set slots=2 --out odd
run "several seeds are for one process" one_line "--seeds is for one process" ranks 2 train $tiny --steps 2 --seeds 2 --out odd
run "a rank that hangs is noticed" hung
run "rank 0 is lost before it saved" lost_before
run "rank 0 is lost after it saved" lost_after
run "rank 0 is lost over an earlier run" lost_over_another
run "SIGTERM to all ranks, then --resume" stopped
run "two jobs of one file" held
run "kill -9 of a random rank" killed "$([ -n "${MNP_TEST_LONG:-}" ] && echo 20 || echo 2)"
check_done
