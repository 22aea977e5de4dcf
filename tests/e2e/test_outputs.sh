#!/usr/bin/env bash
# test_outputs.sh: where results go. Every command is run against a full device, a closed standard
# output, places that cannot be written, a full file system, ulimit -f and an output that is one of
# its inputs: each ends with a non-zero exit status and one line, before any work where that can be
# known, with inputs and earlier outputs as they were and no temporary file left behind. Text from
# files reaches no terminal with its control characters.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
commands=$PWD/cli/commands.def
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1
chmod 755 .
export OMP_NUM_THREADS=1

"$MNP" train --data rbf --functions 20 --preset tiny --steps 2 --quiet --out m || exit 1
awk 'BEGIN { srand(1); print "site,east,north,grade"
    for (f = 0; f < 6; f++) for (i = 0; i < 5; i++) print "s" f "," rand() "," rand() "," rand() }' \
    >ore.csv
"$MNP" train --data ore.csv --function-column site --x east,north --y grade --preset tiny --steps 2 \
    --quiet --out ore || exit 1
"$MNP" train --data wheel --functions 4 --model maml --steps 1 --quiet --out agent.safetensors ||
    exit 1
printf 'x,y\n-1,-0.5\n0,0\n1,0.7\n' >c.csv
printf 'east,north,grade\n0.2,0.3,1\n' >wells.csv
printf 'context,action,reward\n1,0,1\n2,1,0\n1,1,1\n2,0,0\n' >log.csv

# Every way to write files: a name that begins with the command, a file that it writes, its words;
# OUT is where to.
writers="\
gen            OUT.csv          gen rbf --functions 3 --out OUT.csv
gen-array      OUT.npy          gen geofluvial --images 1 --size 8 --out OUT.npy
gen-folder     OUT/sheet.png    gen geofluvial --images 1 --size 8 --out OUT
fit            OUT.safetensors  fit ore.csv --y grade --folds 2 --effort 0 --out OUT
train          OUT.safetensors  train --data rbf --functions 20 --preset tiny --steps 2 --out OUT
train-seeds    OUT-s1.log.csv   train --data rbf --functions 20 --preset tiny --steps 2 --seeds 2 --out OUT
train-agent    OUT.safetensors  train --data wheel --functions 4 --model maml --steps 1 --out OUT.safetensors
eval-note      OUT.safetensors  eval OUT.safetensors --functions 2 --draws 0 --samples 1 --note
shrink         OUT.safetensors  shrink m.safetensors --out OUT.safetensors
info-note      OUT.safetensors  info OUT.safetensors --note k=v
predict        OUT.csv          predict m.safetensors --grid=-1:1:5 --samples 2 --out OUT.csv
predict-map    OUT.csv          predict ore.safetensors --grid 3x4 --samples 2 --out OUT
sample         OUT.csv          sample m.safetensors --grid=-1:1:5 -n 2 --out OUT.csv
check          OUT.svg          check m.safetensors --calibration --functions 4 --draws 5 --context 3 --out OUT.svg
bandit         OUT.csv          bandit --agent uniform --trials 1 --steps 5 --out OUT.csv
plot           OUT.svg          plot m.safetensors --grid=-1:1:5 --samples 2 --draws 1 --out OUT.svg
plot-log       OUT.svg          plot --log m.log.csv --out OUT.svg
repro-table1   OUT/table1.md    repro table1 --models oracle --data rbf --functions 2 --train-functions 2 --seeds 1 --out OUT
repro-table2   OUT/table2.md    repro table2 --quick --agents uniform --deltas 0.5 --horizon short --trials 1 --out OUT"
# Every way to print.
printers="\
gen       gen rbf --functions 3
fit       fit ore.csv --y grade --folds 2 --effort 0 --out quiet/fit
train     train --data rbf --functions 20 --preset tiny --steps 2 --out quiet/m
eval      eval m.safetensors --functions 2 --draws 0 --samples 1
eval-json eval m.safetensors --functions 2 --draws 0 --samples 1 --json --quiet
score     score m.safetensors --targets c.csv --samples 2
predict   predict m.safetensors --grid=-1:1:5 --samples 2
predict-large predict m.safetensors --grid=-1:1:5000 --samples 2
predict-map predict ore.safetensors --grid 3x4 --samples 2
sample    sample m.safetensors --grid=-1:1:5 -n 2
check     check m.safetensors --functions 2 --samples 2
bandit    bandit --agent uniform --trials 1 --steps 5
bandit-log bandit --agent uniform --log log.csv
plot      plot --log m.log.csv --out quiet/p.svg
info      info m.safetensors
info-json info m.safetensors --json --quiet
shrink    shrink m.safetensors --out quiet/s.safetensors
serve     serve m.safetensors --port 0
info-agent info agent.safetensors
bench     bench exp --seconds 0.01
repro     repro table2 --quick --agents uniform --deltas 0.5 --horizon short --trials 1 --out quiet/r
help      help
help-flag train --help
help-long help train
version   --version"
mkdir quiet

# ---- what every refusal has in common

# One line of ours (progress does not count), an exit status that is no signal, no temporary.
one_line() {
    local status=$1
    [ "$status" -gt 0 ] && [ "$status" -lt 126 ] && [ "$(grep -c '^mnp' err.txt)" = 1 ] &&
        [ -z "$(find . -name '*.tmp-*')" ]
}
# The words of a row, with its place for OUT.
words_of() { # ROW PLACE
    local row=$1
    row=${row#* } && row=${row#"${row%%[! ]*}"} # the name
    echo "${row//OUT/$2}"
}
# An earlier output where the row writes: any text, or a model where it must be one.
put_earlier() { # FILE ROW
    mkdir -p "$(dirname "$1")"
    case $2 in
        *-note*) cp m.safetensors "$1" ;;
        fit*) rm -f "$1" ;; # it would refuse for that alone
        *) echo "an earlier output" >"$1" ;;
    esac
}
# COMMAND... ends as it should, without printing, and leaves the file as it was.
keeps() { # FILE COMMAND...
    local file=$1 before status
    shift
    before=$(cksum "$file" 2>&1) # of a folder: that it is one
    "$@" >out.txt 2>err.txt
    status=$?
    cat out.txt err.txt
    one_line $status && [ ! -s out.txt ] && [ "$(cksum "$file" 2>&1)" = "$before" ]
}
# For each writer: ACTION PLACE FILE WORDS..., in a folder of its own.
each_writer() { # TITLE ACTION
    local row name file
    while read -r row; do
        name=${row%% *}
        # shellcheck disable=SC2046  # words are split on purpose
        set -- "$1" "$2" $(words_of "$row" "$name.d/o")
        file=$3
        mkdir -p "$name.d"
        rm -rf "$name.d/o"*
        put_earlier "$file" "$row"
        run "$1: $name" "$2" "$name.d" "$file" "${@:4}"
    done <<<"$writers"
}

# ---- standard output

to_full_device() {
    "$MNP" "$@" >/dev/full 2>err.txt
    local status=$?
    cat err.txt
    one_line $status && grep -q 'No space left on device (the disk is full' err.txt
}
to_closed() {
    "$MNP" "$@" >&- 2>err.txt
    local status=$?
    cat err.txt
    one_line $status && grep -q 'standard output\|/dev/stdout' err.txt
}
closed_keeps() {
    local file=$2 before
    before=$(cksum <"$file")
    to_closed "${@:3}" && [ "$(cksum <"$file")" = "$before" ]
}
while read -r name words; do
    # shellcheck disable=SC2086
    if [ "$name" = serve ] && "$MNP" $words 2>&1 >/dev/full | grep -q apt-get; then
        skip serve "libmicrohttpd is not installed"
        continue
    fi
    # shellcheck disable=SC2086
    run "stdout is full: $name" to_full_device $words
    # shellcheck disable=SC2086
    run "stdout is closed: $name" to_closed $words
done <<<"$printers"
each_writer "stdout is closed" closed_keeps

# with --quiet nothing is printed, and nothing is missed; a table is
run "stdout is closed: train --quiet writes its files" \
    bash -c "'$MNP' train --data rbf --functions 20 --preset tiny --steps 2 --quiet --out q >&- &&
        '$MNP' info q.safetensors"
run "stdout is closed: a table is missed with --quiet too" \
    to_closed predict m.safetensors --grid=-1:1:5 --samples 2 --quiet
# no file of ours may land on the numbers of closed descriptors
all_closed() {
    "$MNP" predict m.safetensors --context c.csv --grid=-1:1:5 --samples 2 --quiet --out all.csv \
        <&- >&- 2>&- && [ "$(wc -l <all.csv)" = 6 ]
}
run "stdin, stdout and stderr closed: the file is whole" all_closed
# a reader that leaves ends the program by its signal, silently
reader_leaves() {
    "$MNP" sample m.safetensors --grid=-1:1:5000 -n 20 --quiet 2>err.txt | head -n 1 >out.txt
    [ "${PIPESTATUS[0]}" = 141 ] && [ ! -s err.txt ] && [ "$(cat out.txt)" = function,x,y ]
}
run "| head: silence" reader_leaves
# what could not be printed stops the run before it writes
stays() { to_full_device "${@:2}" && cmp "$1" m.safetensors; }
cp m.safetensors note.safetensors
run "stdout is full: no note is written" \
    stays note.safetensors eval note.safetensors --functions 2 --draws 0 --samples 1 --note
run "stdout is full: no note is written, info" stays note.safetensors info note.safetensors --note k=v
run "stdout is full: training does not begin" stays note.safetensors \
    train --data rbf --functions 20 --preset tiny --steps 2 --out note

# ---- a full device

for row in 'csv gen rbf --functions 3' 'csv predict m.safetensors --grid=-1:1:5' \
    'csv sample m.safetensors --grid=-1:1:5' 'csv bandit --agent uniform --trials 1 --steps 5' \
    'svg plot --log m.log.csv' 'npy gen geofluvial --images 1 --size 8' \
    'safetensors train --data rbf --functions 20 --preset tiny --steps 2 --quiet' \
    'safetensors train --data wheel --functions 4 --model maml --steps 1 --quiet'; do
    # shellcheck disable=SC2086
    set -- $row
    ln -sf /dev/full "full.$1"
    run "--out is /dev/full: ${*:2:2}" keeps c.csv "$MNP" "${@:2}" --out "full.$1"
done

# ---- places that cannot be written

no_folder() {
    local words=("${@:3}")
    keeps "$2" "$MNP" "${words[@]//"$1/o"/"$1/no/folder/o"}"
}
under_file() {
    local words=("${@:3}")
    keeps "$2" "$MNP" "${words[@]//"$1/o"/c.csv/o}"
}
is_folder() {
    rm -rf "$2" && mkdir -p "$2/inside" && keeps "$2/inside" "$MNP" "${@:3}"
}
each_writer "no such folder" no_folder
each_writer "a file in place of the folder" under_file
each_writer "a folder in place of the file" is_folder

# A user who may not write there; root may everywhere.
as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
if "${as_user[@]}" "$MNP" --version >/dev/null 2>&1; then
    read_only() {
        find "$1" -type d -exec chmod 555 {} +
        keeps "$2" "${as_user[@]}" "$MNP" "${@:3}"
        local status=$?
        find "$1" -type d -exec chmod 755 {} +
        return $status
    }
    each_writer "a read-only folder" read_only
else
    skip "a read-only folder" "no user without rights can run $MNP"
fi

# ---- a full file system

mkdir -p small
if mount -t tmpfs -o size=256k,mode=755 tmpfs small 2>/dev/null; then
    trap 'umount small' EXIT
    no_space() {
        local file=${2/"$1"/small} words=("${@:3}")
        rm -rf small/* && put_earlier "$file" "$1"
        head -c 400000 /dev/zero 2>/dev/null >small/filler
        keeps "$file" "$MNP" "${words[@]//"$1/o"/small/o}" --quiet &&
            grep -q 'No space left on device' err.txt
    }
    each_writer "a full file system" no_space
    umount small && trap - EXIT
else
    skip "a full file system" "no right to mount one"
fi

# ---- ulimit -f

too_large() { # TEXT COMMAND...
    (
        ulimit -f 4
        keeps m.safetensors "$MNP" "${@:2}"
    ) && grep -q "$1" err.txt
}
yes 'an earlier output' | head -n 3 >large.csv
larger() {
    cp large.csv before.csv
    too_large 'File too large (larger than the file system or ulimit -f allows)' "$@" \
        --out large.csv && cmp large.csv before.csv
}
run "ulimit -f: gen" larger gen rbf --functions 100
run "ulimit -f: sample" larger sample m.safetensors --grid=-1:1:500 -n 20
run "ulimit -f: train" too_large 'File too large' \
    train --data rbf --functions 20 --preset tiny --steps 2 --quiet --out m
to_limited() {
    (
        ulimit -f 4
        "$MNP" sample m.safetensors --grid=-1:1:500 -n 20 >limited.csv 2>err.txt
    )
    local status=$?
    cat err.txt
    one_line $status && grep -q 'standard output: cannot write: File too large' err.txt
}
run "ulimit -f: stdout" to_limited

# ---- an output that is an input

ln -sf c.csv link.csv
ln -f c.csv hard.csv
cp ore.csv ore-copy.csv
cp ore.csv d.safetensors
cp ore.csv d2.log.csv
cp log.csv l.safetensors
cp m.log.csv curve.svg
cp ore.csv study.md
mkdir -p tables images && sed '1s/grade/value/' ore.csv >tables/table1.md
"$MNP" gen geofluvial --images 2 --size 8 --out rivers --png 2 --quiet || exit 1
cp rivers/png/*.png images/ || exit 1
same() { # INPUT WORDS...
    keeps "$1" "$MNP" "${@:2}" && grep -q 'which this run reads' err.txt
}
at="predict m.safetensors --grid=-1:1:5 --samples 2"
while read -r input words; do
    # shellcheck disable=SC2086
    run "an output that is an input: $words" same "$input" $words
done <<END
c.csv $at --context c.csv --out c.csv
c.csv $at --context c.csv --out ./quiet/../c.csv
c.csv $at --context c.csv --out link.csv
c.csv $at --context link.csv --out c.csv
c.csv $at --context c.csv --out hard.csv
m.safetensors $at --out m.safetensors
c.csv predict m.safetensors --at c.csv --samples 2 --out c.csv
wells.csv predict ore.safetensors --context wells.csv --grid 3x4 --samples 2 --out wells
wells.csv predict ore.safetensors --context wells.csv --grid 3x4 --samples 2 --out wells.csv
ore.csv predict ore.safetensors --grid 3x4 --samples 2 --out ore
c.csv sample m.safetensors --context c.csv --grid=-1:1:5 --out c.csv
ore-copy.csv gen ore-copy.csv --out ore-copy.csv
d.safetensors train --data d.safetensors --preset tiny --steps 2 --out d
d.safetensors train --data d.safetensors --preset tiny --steps 2 --out ./d.safetensors
d2.log.csv train --data d2.log.csv --preset tiny --steps 2 --out d2
l.safetensors train --data l.safetensors --action action --y reward --x context --model maml --steps 1 --out l.safetensors
curve.svg plot --log curve.svg --out curve.svg
agent.safetensors bandit agent.safetensors --trials 1 --steps 5 --out agent.safetensors
m.safetensors bandit m.safetensors --trials 1 --steps 5 --out m.safetensors
tables/table1.md repro table1 --models gp --data tables/table1.md --functions 2 --out tables
images/train-000000.png repro table3 --quick --images images --out images
END
appended() {
    "$MNP" "${@:2}" >>"$1" 2>err.txt
    local status=$?
    cat err.txt
    one_line $status && grep -q 'standard output would be written over' err.txt
}
cp m.safetensors append.safetensors
run "stdout goes to the model" appended append.safetensors info append.safetensors
run "stdout goes to the model: it is as it was" cmp append.safetensors m.safetensors
run "stdout goes to the context" appended c.csv predict m.safetensors --context c.csv --grid=-1:1:5
# the name of a family is no file, whatever lies there
run "a family and a file of one name are no clash" \
    bash -c "'$MNP' gen rbf --functions 3 --out rbf && '$MNP' gen rbf --functions 3 --out rbf"
# devices and pipes cannot be overwritten
run "/dev/stdin and /dev/stdout are no clash" bash -c \
    "'$MNP' predict m.safetensors --context /dev/stdin --grid=-1:1:5 --out /dev/null <c.csv"

# ---- text from files

esc=$(printf '\033') bell=$(printf '\007') c1=$(printf '\302\233') turn=$(printf '\342\200\256')
foreign="${esc}[31m${bell}${c1}2J${turn}"
clean() { # FILE: no control character but the newline, no direction mark
    ! LC_ALL=C grep -q "[$(printf '\001-\011\013-\037\177')]" "$1" &&
        ! LC_ALL=C grep -q "$c1\|$turn" "$1"
}
cp m.safetensors note.safetensors
"$MNP" info note.safetensors --quiet --note "who=Søren ${foreign}
  best_valid       9.9" || exit 1
notes_are_shown() {
    "$MNP" info note.safetensors >out.txt && cat out.txt
    clean out.txt && grep -q 'Søren \\x1b\[31m\\x07\\u009b2J\\u202e\\n  best_valid' out.txt &&
        [ "$(grep -c '^  best_valid' out.txt)" = 1 ]
}
notes_as_json() {
    "$MNP" info note.safetensors --json --quiet >out.txt && clean out.txt && [ "$(wc -l <out.txt)" = 1 ]
}
run "notes cannot steer a terminal, nor fake a line" notes_are_shown
run "nor in JSON" notes_as_json
printf 'f,a%s,b,z\n1,1,2,3\n1,2,3,x\n' "$foreign" >odd.csv
printf 'f,"a%s\nb",y\n1,1,2\n1,2,3\n2,1,3\n2,4,3\n' "$foreign" >odd2.csv
named_cleanly() { # COMMAND...: fails with one clean line
    "$@" >out.txt 2>err.txt && return 1
    cat out.txt err.txt
    clean err.txt && [ "$(wc -l <err.txt)" = 1 ] && grep -q '\\x1b' err.txt
}
run "headers in errors" named_cleanly "$MNP" predict m.safetensors --context odd.csv --grid=-1:1:5
run "names of files in errors" named_cleanly "$MNP" info "no${foreign}file"
run "words of the command line in errors" named_cleanly "$MNP" "in${foreign}fo"
report_is_clean() {
    "$MNP" train --data odd2.csv --function-column f --preset tiny --steps 2 --out odd >out.txt 2>&1
    cat out.txt
    clean out.txt && grep -q 'x "a\\x1b\[31m\\x07\\u009b2J\\u202e\\nb"' out.txt
}
run "headers in the report of a file" report_is_clean
if command -v script >/dev/null; then
    on_terminal() {
        script -qec "'$MNP' predict odd.safetensors --grid=1:2:3 --samples 2 --quiet" /dev/null \
            >out.txt </dev/null
        tr -d '\r' <out.txt >shown.txt && cat shown.txt && clean shown.txt && grep -q '\\x1b' shown.txt
    }
    run "names of columns in a table on a terminal" on_terminal
else
    skip "names of columns in a table on a terminal" "no command script"
fi
to_a_file() {
    "$MNP" predict odd.safetensors --grid=1:2:3 --samples 2 --quiet >out.txt && grep -q "$esc" out.txt
}
run "and in a file as they are" to_a_file

# ---- nothing was forgotten

all_listed() {
    local missing=0 name
    while read -r name; do
        grep -q "^$name\b" <<<"$printers" || { echo "$name is not in the table" && missing=1; }
        if "$MNP" help "$name" | grep -q '^  --out \|^  --note '; then
            grep -q "^$name\b" <<<"$writers" || { echo "$name writes: not in the table" && missing=1; }
        fi
    done < <(sed -n 's/^COMMAND(\(.*\))$/\1/p' "$commands")
    return $missing
}
run "every command is in the tables" all_listed
check_done
