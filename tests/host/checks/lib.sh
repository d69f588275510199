# shellcheck shell=dash
# What the checks are written with: assertions that print TAP, bytes of the standard's structures, and finding the drive.
#
# A check is a sh file (POSIX and `local`) that `main` runs in a shell of its own after reading this one. An assertion
# prints `ok - what`, or `not ok - what` with what was found; nothing stops at the first failure. SCRATCH is a directory
# for its files. A process costs 30 ms and more under emulation, so the shell does what it can by itself.

# --------------------------------------------------------------------------------------------------- assertions --

pass() {
    echo "ok - $1"
}

# A failure with an explanation: WHAT LINE...
fail() {
    local line
    echo "not ok - $1"
    shift
    for line; do
        printf '%s\n' "$line" | sed 's/^/#   /'
    done
}

# A check that this drive or kernel has no subject for: WHAT WHY.
skip() {
    echo "ok - $1 # SKIP $2"
}

# WHAT FOUND EXPECTED
same() {
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "found:    $2" "expected: $3"; fi
}

# WHAT FOUND UNWANTED
differs() {
    if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "found: $2"; fi
}

# Integers: WHAT FOUND LEAST
at_least() {
    if [ "$2" -ge "$3" ] 2>/dev/null; then pass "$1"; else fail "$1" "found: $2" "least: $3"; fi
}

# Text and an extended regular expression: WHAT TEXT EXPRESSION
matches() {
    if printf '%s\n' "$2" | grep -qE -e "$3"; then pass "$1"; else fail "$1" "no match for $3 in:" "$2"; fi
}

# WHAT COMMAND... ; the command's output is shown if it fails, and kept in $SCRATCH/output.
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

# A command that the drive must refuse: WHAT STATUS COMMAND... ; STATUS is type and code (0x80 is LBA Out of Range), and
# the drive must say that trying again is of no use (DNR).
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

# Waits until a command succeeds: SECONDS COMMAND...
wait_for() {
    local tries=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}

# WHAT SECONDS COMMAND... ; the command must succeed in that time.
eventually() {
    local what=$1 limit_s=$2
    shift 2
    if wait_for "$limit_s" "$@"; then pass "$what"; else fail "$what" "not within $limit_s s: $*"; fi
}

# Hands a value to the checks after the server's restart, where it is $NAME: NAME VALUE
keep() {
    echo "@@keep $1=$2"
}

# -------------------------------------------------------------------------------------------------------- bytes --

# A little-endian integer of 1, 2, 4 or 8 bytes: FILE OFFSET BYTES
field() {
    local value
    value=$(od -A n -v -t "u$3" -j "$2" -N "$3" "$1")
    echo "${value##* }"
}

# Characters without the spaces that fill them up: FILE OFFSET BYTES
characters() {
    dd if="$1" bs=1 skip="$2" count="$3" 2>/dev/null | sed 's/ *$//'
}

# One bit of a field: FILE OFFSET BYTES BIT
bit() {
    echo $(($(field "$1" "$2" "$3") >> $4 & 1))
}

sum_of() { # FILE
    # shellcheck disable=SC2046  # the sum and the file's name
    set -- $(sha256sum "$1")
    echo "$1"
}

# The content of a small file without blanks at its end: FILE
value_of() {
    local value
    read -r value 2>/dev/null <"$1" && echo "$value"
}

# Identifiers that `nvme list-ns` prints, decimal, in a line: ARGUMENTS...
namespaces() {
    local nsid
    nvme list-ns "$@" | awk -F : '$2 ~ /^0x/ { print $2 }' | while read -r nsid; do printf '%d ' "$nsid"; done | sed 's/ $//'
}

# ---------------------------------------------------------------------------------------------------- the drive --

# The controller of a transport, as nvme0: pcie or tcp
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

# Its identifier (CNTLID).
controller_identifier() {
    value_of "/sys/class/nvme/$(controller "$1")/cntlid"
}

# Whether a transport's controller is up.
is_live() {
    [ "$(value_of "/sys/class/nvme/$(controller "$1")/state")" = live ]
}

# The block device of a namespace through a transport, as nvme0n1: TRANSPORT NSID
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

# The device of a namespace whose paths the kernel has joined: NSID
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

# Device files. Waits a little for a namespace that is just appearing.
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

# A file of /sys/block/.../queue: DEVICE-FILE NAME
queue_limit() {
    value_of "/sys/block/${1##*/}/queue/$2"
}

# Bytes of a block device.
size_of() {
    echo $(($(value_of "/sys/block/${1##*/}/size") * 512))
}

# The NQN of the drive, as the first transport's controller says it.
drive_nqn() {
    value_of "/sys/class/nvme/$(controller "${TRANSPORTS%% *}")/subsysnqn"
}

# Connects the NVMe/TCP controller: OPTIONS...
connect_tcp() {
    nvme connect -t tcp -a "$TCP_ADDRESS" -s "$TCP_PORT" -n "$(drive_nqn)" "$@" && wait_for 10 is_live tcp
}

# Ends its connection.
disconnect_tcp() {
    nvme disconnect --device="$(controller tcp)" && wait_for 10 has_no_controller tcp
}

# Runs fio on a device: DEVICE OPTIONS... ; its report is shown if it fails.
run_fio() {
    local device=$1 direct=--direct=1
    shift
    # Passthrough has no page cache to avoid.
    case $device in /dev/ng*) direct= ;; esac
    fio --name=check --filename="$device" $direct --thread --output="$SCRATCH/fio" "$@" || {
        tail -n 15 "$SCRATCH/fio"
        return 1
    }
}

# Reads through the page cache's back: DEVICE OFFSET-BYTES BYTES, multiples of 4096
read_device() {
    dd if="$1" bs=4096 skip=$(($2 / 4096)) count=$(($3 / 4096)) iflag=direct 2>/dev/null
}

# Writes standard input likewise: DEVICE OFFSET-BYTES
write_device() {
    dd of="$1" bs=4096 seek=$(($2 / 4096)) oflag=direct conv=notrunc iflag=fullblock 2>/dev/null
}

# Makes a namespace and attaches it, printing its identifier: ADMIN-DEVICE MEBIBYTES LBA-FORMAT TRANSPORTS OPTIONS...
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

# Bytes of a block in an LBA format without metadata.
format_bytes() {
    if [ "$1" = "$FORMAT_512" ]; then echo 512; else echo 4096; fi
}

# Deletes all namespaces: ADMIN-DEVICE
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

# The drive as it comes: one namespace over everything with all handles, 4096-byte blocks.
restore_namespace() {
    local admin
    admin=$(admin_device "${TRANSPORTS%% *}")
    delete_namespaces "$admin" &&
        make_namespace "$admin" $((CAPACITY_BYTES / 1048576)) "$FORMAT_4096" "$TRANSPORTS" --nphndls=8 --phndls=0,1,2,3,4,5,6,7
}

# Whether all bytes are zero: DEVICE OFFSET-BYTES BYTES
is_zero() {
    read_device "$1" "$2" "$3" >"$SCRATCH/zeroes" && [ "$(tr -d '\0' <"$SCRATCH/zeroes" | wc -c)" = 0 ]
}

random_bytes() {
    head -c "$1" /dev/urandom
}

# ---------------------------------------------------------------------------------------------------------- FDP --

# A counter of the FDP Statistics log, in bytes: ADMIN-DEVICE hbmw|mbmw|mbe
fdp_statistic() {
    nvme get-log "$1" --log-id=0x22 --lsi=1 --log-len=64 --raw-binary >"$SCRATCH/statistics" || return 1
    case $2 in
    hbmw) field "$SCRATCH/statistics" 0 8 ;;
    mbmw) field "$SCRATCH/statistics" 16 8 ;;
    mbe) field "$SCRATCH/statistics" 32 8 ;;
    esac
}

# Bytes of a reclaim unit (RUNS of the first configuration): ADMIN-DEVICE
reclaim_unit_bytes() {
    nvme get-log "$1" --log-id=0x20 --lsi=1 --log-len=80 --raw-binary >"$SCRATCH/configurations" || return 1
    field "$SCRATCH/configurations" 32 8
}

# Lines `PID RUHID RUAMW` of the reclaim unit handle status: DEVICE
handle_status() {
    nvme fdp status "$1" --raw-binary >"$SCRATCH/status" || return 1
    od -A n -v -t u2 -w32 -j 16 "$SCRATCH/status" | awk '{ print $1, $2, $5 + 65536 * $6 + 4294967296 * $7 }'
}

# Lines `TYPE PIV PID NSID RUHID LBA` of an event log, oldest first: ADMIN-DEVICE host|controller
fdp_events() {
    local host=0
    [ "$2" = controller ] || host=1
    nvme get-log "$1" --log-id=0x23 --lsi=1 --lsp=$host --log-len=4096 --raw-binary >"$SCRATCH/events" || return 1
    od -A n -v -t u2 -w64 -j 64 "$SCRATCH/events" | head -n "$(field "$SCRATCH/events" 0 4)" | awk '{
        print $1 % 256, int($1 / 256) % 2, $2, $7 + 65536 * $8, $18, $11 + 65536 * $12 + 4294967296 * $13 }'
}

# How far handles moved between two outputs of handle_status, as `PID:BLOCKS` of those that did: BEFORE AFTER UNIT-BLOCKS
# A handle that goes on in a new reclaim unit is seen modulo the unit's size.
moved_handles() {
    printf '%s\n' "$1" >"$SCRATCH/before"
    printf '%s\n' "$2" | awk -v unit="$3" -v before="$SCRATCH/before" '
        BEGIN { while ((getline line < before) > 0) { split(line, part, " "); available[part[1]] = part[3] } }
        { moved = ((available[$1] - $3) % unit + unit) % unit; if (moved) printf "%s%d:%d", found++ ? " " : "", $1, moved }'
}

# -------------------------------------------------------------------------------------------------------- files --

# Writes files of several sizes, deletes and renames some, and syncs: DIRECTORY MEBIBYTES
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

# One sum over the names and contents of all files: DIRECTORY
tree_sum() {
    (cd "$1" && find . -type f | sort | xargs sha256sum) | sha256sum | cut -d ' ' -f 1
}

# ext4|f2fs DEVICE
make_file_system() {
    case $1 in
    ext4) mkfs.ext4 -q -F "$2" ;;
    f2fs) mkfs.f2fs -q -f "$2" ;;
    xfs) mkfs.xfs -q -f "$2" ;;
    esac
}

# Checks an unmounted file system, changing nothing: ext4|f2fs DEVICE
check_file_system() {
    case $1 in
    ext4) e2fsck -f -n "$2" ;;
    f2fs) fsck.f2fs --dry-run "$2" ;;
    esac
}

# Mounts at /mnt/NAME: ext4|f2fs DEVICE
mount_file_system() {
    mkdir -p "/mnt/$1" && mount -t "$1" "$2" "/mnt/$1"
}
