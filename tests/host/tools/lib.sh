# shellcheck shell=dash
# What a suite of another project says, as TAP: one line for each group of its tests, one for each test that fails.
#
# Lines of /host/known are `TOOL TRANSPORT PATTERN REASON`; the transport may be `any`, the pattern is a shell's. What they name
# may fail. Parameters: TOOL, TRANSPORT, SERIAL.

# shellcheck source-path=SCRIPTDIR source=../checks/lib.sh
. /host/checks/lib.sh

mkdir -p "$SCRATCH"
wait_for 30 has_block_device "$TRANSPORT" 1
BLOCK=$(block_device "$TRANSPORT" 1)
GENERIC=$(generic_device "$TRANSPORT" 1)
mkdir -p /usr/local/bin
# The suites ask for it; here everybody is root.
printf '#!/bin/sh\nexec "$@"\n' >/usr/local/bin/sudo
chmod +x /usr/local/bin/sudo

# Sets PROGRAM to the one that was built beside the sources, else to the guest's, and puts it before all others: NAME BUILT
# One that does not run here fails the suite.
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

# The reason for which a test may fail: GROUP/TEST
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
