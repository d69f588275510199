# shellcheck shell=dash
# Reports the results of another project's suite as TAP. Each group of tests has one line, and so
# has each test that fails.
#
# /host/known lists tests that may fail, as lines `TOOL TRANSPORT PATTERN REASON`. The transport may
# be `any`, and the pattern is a shell pattern. Parameters are TOOL, TRANSPORT and SERIAL.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

mkdir -p "$SCRATCH"
wait_for 30 has_block_device "$TRANSPORT" 1
BLOCK=$(block_device "$TRANSPORT" 1)
GENERIC=$(generic_device "$TRANSPORT" 1)
mkdir -p /usr/local/bin
# The suites call sudo. The guest's user is root.
printf '#!/bin/sh\nexec "$@"\n' >/usr/local/bin/sudo
chmod +x /usr/local/bin/sudo

# `use_program NAME BUILT` sets PROGRAM to the program that was built beside the sources, or else to
# the guest's, and puts it first in PATH. A program that does not run here fails the suite.
use_program() {
    local said
    PROGRAM=$(command -v "$1")
    if [ -e "$2" ]; then
        PROGRAM=$2
        ln -sf "$2" "/usr/local/bin/$1"
    fi
    said=$("$PROGRAM" --version 2>&1) || {
        fail "$TOOL $TRANSPORT: $1 does not run" \
            "$PROGRAM --version ends with exit code $? in the guest: ${said:-it says nothing}" \
            "build it static and for any processor, as tests/host/README.md says"
        return 1
    }
    echo "# $1: $(echo "$said" | head -n 1)"
}

# `known_reason GROUP/TEST` prints the reason why a test may fail.
known_reason() {
    local tool transport pattern reason
    while read -r tool transport pattern reason; do
        [ "$tool" = "$TOOL" ] || continue
        [ "$transport" = any ] || [ "$transport" = "$TRANSPORT" ] || continue
        # shellcheck disable=SC2254  # a pattern
        case $1 in $pattern) echo "$reason" && return ;; esac
    done </host/known
    return 1
}

# Reads lines `GROUP/TEST passed|failed|skipped WHY` and reports them.
report() {
    local name result why reason group='' passed=0 failed=0 skipped=0 known=0
    sort -t / -s -k 1,1 >"$SCRATCH/verdicts"
    echo "end/" >>"$SCRATCH/verdicts"
    while read -r name result why; do
        if [ "${name%%/*}" != "$group" ]; then
            [ -z "$group" ] ||
                pass "$TOOL $TRANSPORT $group: $passed passed, $failed failed, $known failed as known, $skipped skipped"
            group=${name%%/*} passed=0 failed=0 skipped=0 known=0
        fi
        case $result in
        passed) passed=$((passed + 1)) ;;
        skipped) skipped=$((skipped + 1)) && echo "# $name is skipped: $why" ;;
        failed)
            if reason=$(known_reason "$name"); then
                known=$((known + 1))
                echo "# $name fails, as known: $reason"
            else
                failed=$((failed + 1))
                fail "$TOOL $TRANSPORT $name" "$why"
            fi
            ;;
        esac
    done <"$SCRATCH/verdicts"
}
