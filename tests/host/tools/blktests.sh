# shellcheck shell=dash
# Runs the tests of blktests' nvme and block groups that test a drive. The other tests check the
# kernel with its own drives.

# shellcheck source-path=SCRIPTDIR source=lib.sh
. /host/lib.sh

cp -r /host/source "$SCRATCH/suite"
cd "$SCRATCH/suite" || exit 1
echo "TEST_DEVS=($BLOCK) TIMEOUT=30" >config
# shellcheck disable=SC2046  # words
bash ./check $(grep -l '^test_device()' tests/nvme/[0-9]?? tests/block/[0-9]?? | sed 's,^tests/,,') </dev/null >"$SCRATCH/log" 2>&1
# blktests prints a line again when it has a result.
tr '\r' '\n' <"$SCRATCH/log" | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | awk '
    function done() { if (name) print name, result, why }
    / => .*\[/ || /^[a-z]+\/[0-9]+ .*\[/ {
        done()
        name = $1
        result = /\[passed\]/ ? "passed" : /\[failed\]/ ? "failed" : "skipped"
        why = ""
        next
    }
    /^    [^ ]/ && result != "passed" && length(why) < 300 { gsub(/ +/, " "); why = why $0 ";" }
    END { done() }' | awk '{ last[$1] = $0 } END { for (name in last) print last[name] }' | report
exit 0
