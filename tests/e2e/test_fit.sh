#!/usr/bin/env bash
# test_fit.sh: mnp fit from a table to files: what it says, its JSON, that nothing is written over, and that
# bad tables end with one line and no file. The models are asked afterwards. Without the network, which takes
# longer; with MNP_TEST_LONG=1 with a short one.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/check.sh
. tests/check.sh
MNP=${MNP:-$PWD/build/mnp}
tmp=${TEST_TMP:-$(mktemp -d)}
cd "$tmp" || exit 1

# Lines with their own offset and slope, one measurement without a value.
awk 'BEGIN { srand(3); print "plant,day,height"
    for (i = 0; i < 12; i++) { a = 3 * rand(); b = 0.3 + 0.2 * rand()
        for (j = 0; j < 7; j++) print "p" i "," 5 * j "," (i + j == 9 && i == 4 ? "" : a + b * 5 * j + 0.1 * rand()) } }' >grow.csv

fits() {
    "$MNP" fit grow.csv --effort 0 --seed 2 --json >out.txt 2>err.txt || { cat err.txt; return 1; }
    tail -n 1 out.txt >grow.json
    cat err.txt
}
said() { grep -q -- "$1" err.txt; }
run "a table to files" fits
run "what was understood, in three lines" said '12 curves, 83 points'
run "the mixed model's answer comes first" said '^mixed model, after .*: given the first 3 points of a new curve'
run "the next command" said 'mnp predict grow.safetensors --context'
files() { ls grow*.safetensors; [ "$(find . -name 'grow*.safetensors' | wc -l)" = 5 ] && [ -e grow.offset.safetensors ] && [ -e grow.lmm.safetensors ] && [ -e grow.smooth.safetensors ] && [ -e grow.gp.safetensors ]; }
run "the best under the table's name, the others beside it" files

has() { grep -qE -- "$1" grow.json || { cat grow.json; return 1; }; }
run "JSON: best" has '"best":"average"'
run "JSON: curves, folds" has '"curves":12,"folds":5'
run "JSON: columns" has '"columns":\{"x":\["day"\],"y":"height","group":"plant"\}'
run "JSON: a row for each model and task" has '"table":\[(\{[^}]*\},?){10}\]'
run "JSON: warnings" has '"warnings":\[.*\]'
run "JSON: the command that repeats it" has '"command":"mnp fit grow.csv --folds 5 --effort 0 --seed 2"'
laws() { "$MNP" info grow.safetensors 2>&1 | tee info.txt; grep -q ': an average of 128 laws, [0-9.]*k numbers in all$' info.txt; }
run "info: laws, not the parameters of one model" laws
# 12 curves of 7 points, one of 6: 4 targets each but one
run "every curve is scored once" has '"model":"lmm","task":"first","curves":12,"targets":47,'

again() {
    "$MNP" fit grow.csv --effort 0 --seed 2 --quiet --threads 1 --out again/m && cmp grow.safetensors again/m.safetensors &&
        cmp grow.gp.safetensors again/m.gp.safetensors
}
mkdir again
run "the same bits with one thread" again
over() {
    before=$(cksum grow*.safetensors)
    ! "$MNP" fit grow.csv --effort 0 >out.txt 2>err.txt && cat err.txt && [ "$(wc -l <err.txt)" = 1 ] &&
        grep -q 'grow.safetensors exists' err.txt && [ "$(cksum grow*.safetensors)" = "$before" ]
}
run "nothing is written over" over
beside() { # a file of the others is in the way
    rm -f side*.safetensors && touch side.gp.safetensors
    ! "$MNP" fit grow.csv --effort 0 --out side 2>err.txt && cat err.txt && grep -q 'side.gp.safetensors exists' err.txt && [ ! -e side.safetensors ]
}
run "nor over the others" beside
predicts() {
    printf 'day,height\n0,1\n5,3\n10,5\n' >new.csv
    "$MNP" predict grow.safetensors --context new.csv --grid 0:30:4 --out forecast.csv && [ "$(wc -l <forecast.csv)" = 5 ] &&
        "$MNP" info grow.safetensors | grep -q 'on 12 curves that it had not seen'
}
run "the model answers, and says how it was scored" predicts

# ---- the report and the picture

parsed() { # FILE: is it XML?
    if command -v xmllint >/dev/null; then xmllint --noout "$1"; else python3 -c \
        'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' "$1"; fi
}
# of the best: its 95 % coverage and CRPS, as the JSON has them, in the page
numbers() {
    local row crps held
    row=$(grep -o '{"model":"average","task":"first"[^}]*}' grow.json)
    crps=$(sed 's/.*"crps":\([^,]*\),"crps_se":\([^,]*\),.*/\1 \2/' <<<"$row" | awk '{
        size = int(log($2) / log(10)); if (log($2) / log(10) < size) size--
        d = 1 - size; printf "%.*f ± %.*f", d, $1, d, $2 }')
    held=$(sed 's/.*"coverage95":\([^,]*\),.*/\1/' <<<"$row" | awk '{ printf "%.0f %%", 100 * $1 }')
    echo "$crps, $held"
    grep -q "<tr class=\"best\"><td>average of mixed models (best)</td><td>$crps</td>.*<td>$held</td><td>[0-9.]*</td></tr>" grow.html &&
        grep -q "held <b>$held</b> of the other 47 measurements (12 curves)" grow.html
}
picture() { # 6 panels of curves that were held out, 3 points given in each, 4 held back (3 in the one of 6 points)
    parsed grow.svg && ! grep -qi 'nan\|inf[^o]' grow.svg && [ "$(grep -o '>p[0-9]*<' grow.svg | sort -u | wc -l)" = 6 ] &&
        [ "$(grep -c '<circle[^>]*fill="#222222"' grow.svg)" = $((6 * 3 + 1)) ] &&
        rings=$(grep -c '<circle[^>]*fill="#ffffff"' grow.svg) && [ "$rings" -ge 24 ] && [ "$rings" -le 25 ]
}
alone() { ! grep -q 'src=\|href=\|<script\|@import' grow.html && grep -q 'mnp fit grow.csv --folds 5 --effort 0 --seed 2' grow.html; }
if command -v xmllint >/dev/null || command -v python3 >/dev/null; then
    run "the report is well-formed" parsed grow.html
    run "the picture" picture
else
    skip "the report is well-formed" "neither xmllint nor python3"
    skip "the picture" "neither xmllint nor python3"
fi
run "the numbers of the report" numbers
run "the report needs nothing else and repeats the command" alone
hostile() {
    awk 'BEGIN { srand(4); print "id,<script>alert(1)</script>,y & z"
        for (i = 0; i < 6; i++) for (j = 0; j < 5; j++) print "<b>" i "</b>," j "," i + j + rand() }' >hostile.csv
    "$MNP" fit hostile.csv --y "y & z" --effort 0 --folds 2 --report "r & r.html" --quiet 2>/dev/null && [ ! -e hostile.html ] &&
        ! grep -q '<script\|<b>[0-9]<' "r & r.html" hostile.svg && grep -q '>&lt;script&gt;alert(1)&lt;/script&gt;</text>' hostile.svg &&
        grep -qF "mnp fit hostile.csv --y &#39;y &amp; z&#39; --report &#39;r &amp; r.html&#39;" "r & r.html"
}
run "names from the table are no markup" hostile
in_the_way() {
    touch way.svg
    ! "$MNP" fit grow.csv --effort 0 --out way 2>err.txt && grep -q 'way.svg exists' err.txt && [ ! -e way.safetensors ]
}
run "a picture is not written over" in_the_way
one_name() { # REPORT: the name of another file of the run, in whichever way it is written
    ! "$MNP" fit grow.csv --effort 0 --out twice --report "$1" 2>err.txt && cat err.txt && [ "$(wc -l <err.txt)" = 1 ] &&
        grep -qF -- "--report $1 is the name of another file" err.txt && [ -z "$(find . -name 'twice*')" ]
}
run "a report in place of the best model" one_name twice.safetensors
run "a report in place of another model" one_name ./twice.gp.safetensors
run "a report in place of the picture" one_name "$PWD/twice.svg"
report_there() {
    touch there.html
    ! "$MNP" fit grow.csv --effort 0 --out new --report there.html 2>err.txt && cat err.txt && grep -q 'there.html exists.*--report' err.txt
}
run "a report is not written over" report_there
late() { # a file comes into the way while the fit runs: its table is there only after the names were looked at
    mkfifo pipe.csv && { { touch late.gp.safetensors && cat grow.csv; } >pipe.csv & }
    ! "$MNP" fit pipe.csv --effort 0 --out late --quiet 2>err.txt && cat err.txt && grep -q 'late.gp.safetensors exists' err.txt &&
        [ "$(find . -name 'late*')" = ./late.gp.safetensors ]
}
run "models that cannot be written leave no report" late
grids() { # FORMAT RANGE: the range in the next command
    awk -v form="$1" 'BEGIN { srand(5); print "id,when,y"
        for (i = 0; i < 6; i++) for (j = 1; j < 6; j++) printf "c%d," form ",%g\n", i, j, i + j + rand() }' >when.csv
    rm -f when[.]*safetensors when.html when.svg
    "$MNP" fit when.csv --effort 0 --folds 2 2>&1 | grep -- "--grid $2:50 "
}
run "the range of seconds" grids '170000000%d' '1700000001:1700000005'
run "the range of dates" grids '2024-01-0%d' '2024-01-01:2024-01-05'
covariates() { # the command asks along time, and the context says what is constant in a curve
    awk 'BEGIN { srand(6); print "id,soil,dose,t,y"
        for (i = 0; i < 6; i++) for (j = 1; j < 6; j++) print "c" i "," (i % 2 ? "clay" : "sand") "," 5 * (i % 3) "," j "," i + j + rand() }' >soil.csv
    "$MNP" fit soil.csv --effort 0 --folds 2 2>/dev/null | grep -- 'soil.safetensors --context new.csv --grid 1:5:50 ' &&
        head -n 3 soil.csv >new.csv && "$MNP" predict soil.safetensors --context new.csv --grid 1:5:50 --quiet --out forecast.csv &&
        [ "$(wc -l <forecast.csv)" = 51 ]
}
run "the range of time beside what is constant in a curve" covariates

# ---- bad tables: one line, no file

: >empty.csv
printf 'id,t,y\na,1,2\na,2,3\na,3,4\n' >one.csv
printf 'id,t,y\na,1,2\nb,2,3\nc,3,4\n' >single.csv
awk 'BEGIN { print "id,t,y"; for (i = 0; i < 6; i++) for (j = 0; j < 4; j++) print i "a," j ",w" j % 3 }' >words.csv
printf 'PK\003\004 a zip archive' >sheet.xlsx
refused() { # FILE TEXT
    "$MNP" fit "$1" --effort 0 --quiet >out.txt 2>err.txt
    local status=$?
    cat err.txt
    [ $status = 1 ] && [ ! -s out.txt ] && [ "$(wc -l <err.txt)" = 1 ] && grep -q -- "$2" err.txt &&
        [ ! -e "${1%.*}.safetensors" ]
}
run "an empty table" refused empty.csv 'the file is empty'
run "one curve" refused one.csv 'at least 3 are needed'
run "curves of one point" refused single.csv 'no curve has 2 observed points'
run "words in y" refused words.csv 'is not a number'
run "a spreadsheet" refused sheet.xlsx 'save the sheet as CSV'
run "no such file" refused nothing.csv 'No such file'
family() { ! "$MNP" fit rbf 2>err.txt && grep -q 'built-in family' err.txt; }
run "a family is no table" family

# ---- doubtful tables: an answer with a warning

warns() { # FILE TEXT
    "$MNP" fit "$1" --effort 0 --json >out.txt 2>err.txt || { cat err.txt; return 1; }
    cat err.txt
    grep -q -- "^warning: $2" err.txt && tail -n 1 out.txt | grep -q -- "$2"
}
awk 'BEGIN { print "id,t,y"; for (i = 0; i < 4; i++) for (j = 0; j < 4; j++) print i "a," j ",5" }' >same.csv
awk 'BEGIN { srand(1); print "id,t,y"; for (i = 0; i < 5; i++) for (j = 0; j < 4; j++) print i "a," int(j / 2) "," i + j + rand() }' >five.csv
run "constant y" warns same.csv 'y is the same number everywhere'
run "five curves, with two points at each time" warns five.csv '5 curves are few'

flags_clash() { ! "$MNP" fit grow.csv --effort 1 --seconds 9 2>err.txt && grep -q 'exclude each other' err.txt; }
run "--effort and --seconds" flags_clash
interrupted() {
    "$MNP" fit grow.csv --out cut >out.txt 2>err.txt &
    local pid=$! status
    at_work $pid 0.2 && kill -INT $pid
    wait $pid
    status=$?
    cat err.txt
    [ $status = 130 ] && [ -z "$(find . -name 'cut*')" ]
}
run "Ctrl-C leaves nothing" interrupted
if [ "${MNP_TEST_LONG:-0}" = 1 ]; then
    network() {
        "$MNP" fit grow.csv --effort 0.02 --folds 2 --out net --quiet && [ -e net.network.safetensors ] &&
            "$MNP" info net.network.safetensors | grep -q 'condition.*exact'
    }
    run "with the network" network
fi
check_done
