# shellcheck shell=dash
# Functions for the checks: assertions that print TAP, access to bytes of the standard's structures,
# and discovery of the drive.
#
# A check is a sh file (POSIX and `local`). `main` runs it in its own shell after this file. An
# assertion prints `ok - what`, or `not ok - what` with the value found. No assertion ends the
# check. SCRATCH is a directory for the files of the check. A process costs 30 ms or more under
# emulation, so the functions prefer builtins of the shell.

# ------------------------------------------------------------------------------------ assertions --

pass() {
    echo "ok - $1"
}

# `fail WHAT LINE...` reports a failure with an explanation.
fail() {
    local line
    echo "not ok - $1"
    shift
    for line; do
        printf '%s\n' "$line" | sed 's/^/#   /'
    done
}

# `skip WHAT WHY` reports a check that does not apply to this drive or kernel.
skip() {
    echo "ok - $1 # SKIP $2"
}

# `same WHAT FOUND EXPECTED` asserts that two values are equal.
same() {
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "found:    $2" "expected: $3"; fi
}

# `differs WHAT FOUND UNWANTED` asserts that two values differ.
differs() {
    if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "found: $2"; fi
}

# `at_least WHAT FOUND LEAST` asserts a lower bound of an integer.
at_least() {
    if [ "$2" -ge "$3" ] 2>/dev/null; then pass "$1"; else fail "$1" "found: $2" "least: $3"; fi
}

# `matches WHAT TEXT EXPRESSION` asserts that an extended regular expression matches.
matches() {
    if printf '%s\n' "$2" | grep -qE -e "$3"; then pass "$1"; else fail "$1" "no match for $3 in:" "$2"; fi
}

# `succeeds WHAT COMMAND...` asserts that a command succeeds, and shows its output if it does not.
# The output remains in $SCRATCH/output.
succeeds() {
    local what=$1 code=0
    shift
    "$@" >"$SCRATCH/output" 2>&1 || code=$?
    if [ $code = 0 ]; then
        pass "$what"
    else
        fail "$what" "$* ended with $code" "$(tail -n 12 "$SCRATCH/output")"
    fi
}

# `refused WHAT STATUS COMMAND...` asserts that the drive refuses a command with Do Not Retry (DNR).
# STATUS is the type and the code, so 0x80 is LBA Out of Range.
refused() {
    local what=$1 expected=$2 status
    shift 2
    if "$@" >"$SCRATCH/output" 2>&1; then
        fail "$what" "$* succeeded"
        return
    fi
    status=$(sed -n 's/.*(\(0x[0-9a-f]*\)).*/\1/p' "$SCRATCH/output" | tail -n 1)
    if [ -z "$status" ]; then
        fail "$what" "$* failed without an NVMe status" "$(tail -n 5 "$SCRATCH/output")"
    elif [ $((status & 0x7ff)) -ne $((expected)) ]; then
        fail "$what" "found status: $(grep "($status)" "$SCRATCH/output")" "expected:     $expected"
    elif [ $((status & 0x4000)) -eq 0 ]; then
        fail "$what" "the status lacks Do Not Retry: $status"
    else
        pass "$what"
    fi
}

# `wait_for SECONDS COMMAND...` waits until a command succeeds.
wait_for() {
    local tries=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# `eventually WHAT SECONDS COMMAND...` asserts that a command succeeds within a time.
eventually() {
    local what=$1 limit_s=$2
    shift 2
    if wait_for "$limit_s" "$@"; then pass "$what"; else fail "$what" "not within $limit_s s: $*"; fi
}

# `keep NAME VALUE` sets $NAME for the checks after the server's restart.
keep() {
    echo "@@keep $1=$2"
}

# ----------------------------------------------------------------------------------------- bytes --

# `field FILE OFFSET BYTES` prints a little-endian integer of 1, 2, 4 or 8 bytes.
field() {
    local value
    value=$(od -A n -v -t "u$3" -j "$2" -N "$3" "$1")
    echo "${value##* }"
}

# `characters FILE OFFSET BYTES` prints a string without its padding.
characters() {
    dd if="$1" bs=1 skip="$2" count="$3" 2>/dev/null | sed 's/ *$//'
}

# `bit FILE OFFSET BYTES BIT` prints one bit of a field.
bit() {
    echo $(($(field "$1" "$2" "$3") >> $4 & 1))
}

sum_of() { # FILE
    # shellcheck disable=SC2046  # the sum and the file's name
    set -- $(sha256sum "$1")
    echo "$1"
}

# `value_of FILE` prints the first line of a small file without trailing blanks.
value_of() {
    local value
    read -r value 2>/dev/null <"$1" && echo "$value"
}

# `namespaces ARGUMENTS...` prints the identifiers of `nvme list-ns` as decimal numbers in one line.
namespaces() {
    local nsid
    nvme list-ns "$@" | awk -F : '$2 ~ /^0x/ { print $2 }' | while read -r nsid; do printf '%d ' "$nsid"; done | sed 's/ $//'
}

# ------------------------------------------------------------------------------------- the drive --

# `controller pcie|tcp` prints the name of a transport's controller, such as nvme0.
controller() {
    local path
    for path in /sys/class/nvme/nvme*; do
        if [ "$(value_of "$path/transport")" = "$1" ] && [ "$(value_of "$path/serial")" = "$SERIAL" ]; then
            echo "${path##*/}"
            return 0
        fi
    done
    return 1
}

# `controller_identifier pcie|tcp` prints the CNTLID of a transport's controller.
controller_identifier() {
    value_of "/sys/class/nvme/$(controller "$1")/cntlid"
}

# `is_live pcie|tcp` succeeds if the controller of a transport is live.
is_live() {
    [ "$(value_of "/sys/class/nvme/$(controller "$1")/state")" = live ]
}

# `block_of TRANSPORT NSID` prints the name of a block device, such as nvme0n1.
block_of() {
    local path
    for path in /sys/class/nvme/"$(controller "$1")"/nvme*n*; do
        if [ "$(value_of "$path/nsid")" = "$2" ]; then
            echo "${path##*/}"
            return 0
        fi
    done
    return 1
}

# `multipath_device NSID` prints the device of a namespace with joined paths.
multipath_device() {
    local path
    for path in /sys/class/nvme-subsystem/*/nvme*n*; do
        if [ "$(value_of "$path/nsid")" = "$1" ]; then
            echo "/dev/${path##*/}"
            return 0
        fi
    done
    return 1
}

# The next functions print device files. They wait for a namespace that is about to appear.
admin_device() {
    echo "/dev/$(controller "$1")"
}
block_device() {
    wait_for 10 block_of "$1" "$2"
    echo "/dev/$(block_of "$1" "$2")"
}
generic_device() {
    local name
    wait_for 10 block_of "$1" "$2"
    name=$(block_of "$1" "$2")
    echo "/dev/ng${name#nvme}"
}

has_no_controller() {
    ! controller "$1" >/dev/null
}
has_block_device() {
    block_of "$1" "$2" >/dev/null
}
has_no_block_device() {
    ! block_of "$1" "$2" >/dev/null
}

# `queue_limit DEVICE-FILE NAME` prints a file of /sys/block/.../queue.
queue_limit() {
    value_of "/sys/block/${1##*/}/queue/$2"
}

# `size_of DEVICE-FILE` prints the bytes of a block device.
size_of() {
    echo $(($(value_of "/sys/block/${1##*/}/size") * 512))
}

# Prints the drive's NQN, as the controller of the first transport reports it.
drive_nqn() {
    value_of "/sys/class/nvme/$(controller "${TRANSPORTS%% *}")/subsysnqn"
}

# `connect_tcp OPTIONS...` connects the NVMe/TCP controller.
connect_tcp() {
    nvme connect -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" -n "$(drive_nqn)" "$@" && wait_for 10 is_live tcp
}

# Disconnects the NVMe/TCP controller.
disconnect_tcp() {
    nvme disconnect --device="$(controller tcp)" && wait_for 10 has_no_controller tcp
}

# `run_fio DEVICE OPTIONS...` runs fio on a device, and shows its report if it fails.
run_fio() {
    local device=$1 direct=--direct=1
    shift
    # Passthrough bypasses the page cache.
    case $device in /dev/ng*) direct= ;; esac
    fio --name=check --filename="$device" $direct --thread --output="$SCRATCH/fio" "$@" || {
        tail -n 15 "$SCRATCH/fio"
        return 1
    }
}

# `read_device DEVICE OFFSET-BYTES BYTES` reads with direct I/O. The numbers are multiples of 4096.
read_device() {
    dd if="$1" bs=4096 skip=$(($2 / 4096)) count=$(($3 / 4096)) iflag=direct 2>/dev/null
}

# `write_device DEVICE OFFSET-BYTES` writes standard input with direct I/O.
write_device() {
    dd of="$1" bs=4096 seek=$(($2 / 4096)) oflag=direct conv=notrunc iflag=fullblock 2>/dev/null
}

# `make_namespace ADMIN-DEVICE MEBIBYTES LBA-FORMAT TRANSPORTS OPTIONS...` creates a namespace,
# attaches it and prints its identifier.
make_namespace() {
    local admin=$1 blocks=$(($2 * 1048576 / $(format_bytes "$3"))) format=$3 controllers='' transport nsid
    for transport in $4; do
        controllers=$controllers${controllers:+,}$(controller_identifier "$transport")
    done
    shift 4
    nvme create-ns "$admin" --nsze=$blocks --ncap=$blocks --flbas="$format" --nmic=1 --endg-id=1 "$@" \
        >"$SCRATCH/created" 2>&1 || { cat "$SCRATCH/created" && return 1; }
    nsid=$(sed -n 's/.*nsid: *\([0-9]*\).*/\1/p' "$SCRATCH/created")
    nvme attach-ns "$admin" --namespace-id="$nsid" --controllers="$controllers" >"$SCRATCH/created" 2>&1 ||
        { cat "$SCRATCH/created" && return 1; }
    echo "$nsid"
}

# `format_bytes LBA-FORMAT` prints the data bytes of a block in a format without metadata.
format_bytes() {
    if [ "$1" = "$FORMAT_512" ]; then echo 512; else echo 4096; fi
}

# `delete_namespaces ADMIN-DEVICE` deletes all namespaces.
delete_namespaces() {
    local nsid transport
    for nsid in $(namespaces "$1" --all); do
        nvme delete-ns "$1" --namespace-id="$nsid" >/dev/null || return 1
    done
    for transport in $TRANSPORTS; do
        for nsid in 1 2 3; do
            wait_for 10 has_no_block_device "$transport" "$nsid" || return 1
        done
    done
}

# Restores the initial state of the drive, one namespace of full capacity with all handles and
# 4096-byte blocks.
restore_namespace() {
    local admin
    admin=$(admin_device "${TRANSPORTS%% *}")
    delete_namespaces "$admin" &&
        make_namespace "$admin" $((CAPACITY_BYTES / 1048576)) "$FORMAT_4096" "$TRANSPORTS" --nphndls=8 --phndls=0,1,2,3,4,5,6,7
}

# `is_zero DEVICE OFFSET-BYTES BYTES` succeeds if all bytes are zero.
is_zero() {
    read_device "$1" "$2" "$3" >"$SCRATCH/zeroes" && [ "$(tr -d '\0' <"$SCRATCH/zeroes" | wc -c)" = 0 ]
}

random_bytes() {
    head -c "$1" /dev/urandom
}

# ------------------------------------------------------------------------------------------- FDP --

# `fdp_statistic ADMIN-DEVICE hbmw|mbmw|mbe` prints a counter of the FDP Statistics log, in bytes.
fdp_statistic() {
    nvme get-log "$1" --log-id=0x22 --lsi=1 --log-len=64 --raw-binary >"$SCRATCH/statistics" || return 1
    case $2 in
    hbmw) field "$SCRATCH/statistics" 0 8 ;;
    mbmw) field "$SCRATCH/statistics" 16 8 ;;
    mbe) field "$SCRATCH/statistics" 32 8 ;;
    esac
}

# `reclaim_unit_bytes ADMIN-DEVICE` prints RUNS of the first configuration.
reclaim_unit_bytes() {
    nvme get-log "$1" --log-id=0x20 --lsi=1 --log-len=80 --raw-binary >"$SCRATCH/configurations" || return 1
    field "$SCRATCH/configurations" 32 8
}

# `handle_status DEVICE` prints lines `PID RUHID RUAMW` of the reclaim unit handle status.
handle_status() {
    nvme fdp status "$1" --raw-binary >"$SCRATCH/status" || return 1
    od -A n -v -t u2 -w32 -j 16 "$SCRATCH/status" | awk '{ print $1, $2, $5 + 65536 * $6 + 4294967296 * $7 }'
}

# `fdp_events ADMIN-DEVICE host|controller` prints lines `TYPE PIV PID NSID RUHID LBA` of an event
# log, oldest event first.
fdp_events() {
    local host=0
    [ "$2" = controller ] || host=1
    nvme get-log "$1" --log-id=0x23 --lsi=1 --lsp=$host --log-len=4096 --raw-binary >"$SCRATCH/events" || return 1
    od -A n -v -t u2 -w64 -j 64 "$SCRATCH/events" | head -n "$(field "$SCRATCH/events" 0 4)" | awk '{
        print $1 % 256, int($1 / 256) % 2, $2, $7 + 65536 * $8, $18, $11 + 65536 * $12 + 4294967296 * $13 }'
}

# `moved_handles BEFORE AFTER UNIT-BLOCKS` compares two outputs of handle_status and prints
# `PID:BLOCKS` of each handle that moved. The blocks are modulo the reclaim unit's size, because a
# handle may continue in a new unit.
moved_handles() {
    printf '%s\n' "$1" >"$SCRATCH/before"
    printf '%s\n' "$2" | awk -v unit="$3" -v before="$SCRATCH/before" '
        BEGIN { while ((getline line < before) > 0) { split(line, part, " "); available[part[1]] = part[3] } }
        { moved = ((available[$1] - $3) % unit + unit) % unit; if (moved) printf "%s%d:%d", found++ ? " " : "", $1, moved }'
}

# ----------------------------------------------------------------------------------------- files --

# `populate DIRECTORY MEBIBYTES` writes files of several sizes, deletes and renames some of them,
# and syncs.
populate() {
    local index=0
    mkdir -p "$1/kept" "$1/passing" || return 1
    while [ $index -lt 30 ]; do
        random_bytes $((1 + index * index * 97)) >"$1/kept/small-$index" || return 1
        random_bytes 20000 >"$1/passing/small-$index" || return 1
        index=$((index + 1))
    done
    random_bytes $(($2 * 1048576)) >"$1/kept/large" || return 1
    rm -r "$1/passing"
    mv "$1/kept/small-7" "$1/kept/renamed"
    sync
}

# `tree_sum DIRECTORY` prints one checksum of the names and contents of all files.
tree_sum() {
    (cd "$1" && find . -type f | sort | xargs sha256sum) | sha256sum | cut -d ' ' -f 1
}

# `make_file_system ext4|f2fs|xfs DEVICE` makes a file system.
make_file_system() {
    case $1 in
    ext4) mkfs.ext4 -q -F "$2" ;;
    f2fs) mkfs.f2fs -q -f "$2" ;;
    xfs) mkfs.xfs -q -f "$2" ;;
    esac
}

# `check_file_system ext4|f2fs DEVICE` checks an unmounted file system without changes to it.
check_file_system() {
    case $1 in
    ext4) e2fsck -f -n "$2" ;;
    f2fs) fsck.f2fs --dry-run "$2" ;;
    esac
}

# `mount_file_system ext4|f2fs|xfs DEVICE` mounts a device at /mnt/NAME.
mount_file_system() {
    mkdir -p "/mnt/$1" && mount -t "$1" "$2" "/mnt/$1"
}
