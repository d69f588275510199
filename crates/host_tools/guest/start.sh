# shellcheck shell=dash
# The second half of the guest's start, in its own root file system. It attaches the drive, runs
# /warp/command with its output on ports of the host, reports the exit status and powers off.
#
# /warp/parameters contains three variables. DRIVES is the number of drives to wait for. CONNECT has
# the arguments of `nvme connect`, a line for each drive. SHELL_SIZE has the rows and columns of a
# terminal, and is empty if there is no shell.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/warp/bin HOME=/root
# shellcheck disable=SC1091  # made for each boot
. /warp/parameters
mkdir -p /dev/shm /dev/pts
# Shells look here for the open files of a process. A device manager would make these links.
ln -s /proc/self/fd /dev/fd
ln -s fd/0 /dev/stdin
ln -s fd/1 /dev/stdout
ln -s fd/2 /dev/stderr
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tracefs tracing /sys/kernel/tracing
for module in nvme virtio_net nvme-tcp ext4 f2fs; do
    modprobe "$module"
done
hostname guest
ifconfig lo 127.0.0.1 up
# There is no default route. The guest reaches only the loopback addresses of the host (10.0.2.2).
[ -d /sys/class/net/eth0 ] && ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up

# `port NAME` prints the device of a virtio serial port.
port() {
    for port in /sys/class/virtio-ports/*; do
        [ "$(cat "$port/name" 2>/dev/null)" = "$1" ] && echo "/dev/${port##*/}" && return
    done
    return 1
}

tries=0
while ! control=$(port control) && [ "$tries" -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
exec 3>"$control"
fail() {
    echo "problem $*" >&3
}
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=mmap shared /shared || fail "the folder cannot be mounted"
echo "$CONNECT" | while read -r arguments && [ -n "$arguments" ]; do
    # shellcheck disable=SC2086  # words
    connected=$(nvme connect $arguments 2>&1) || fail "nvme connect $arguments failed: $connected"
done

# `namespaces` prints the number of namespaces.
namespaces() {
    set -- /dev/nvme*n1
    [ -b "$1" ] && echo "$#" || echo 0
}

tries=0
while [ "$(namespaces)" -lt "$DRIVES" ]; do
    [ "$tries" -lt 300 ] || { fail "only $(namespaces) of $DRIVES drives appeared within 30 s" && break; }
    tries=$((tries + 1))
    sleep 0.1
done
# The kernel names drives in the order of their answers. /dev/drive1 is always the first drive.
if [ "$DRIVES" -gt 1 ]; then
    for namespace in /dev/nvme*n1; do
        read -r serial <"/sys/block/${namespace##*/}/device/serial"
        ln -s "${namespace##*/}" "/dev/drive${serial##*-}"
    done
fi
read -r seconds _ </proc/uptime
echo "up $seconds" >&3
cd /shared || exit
if [ -n "$SHELL_SIZE" ]; then
    # The terminal loses its size when no process has it open.
    setsid -c sh -c "stty sane $SHELL_SIZE; exec sh -l" </dev/hvc0 >/dev/hvc0 2>&1
else
    sh /warp/command >"$(port output)" 2>"$(port error)" </dev/null
fi
code=$?
cd /
sync
umount /shared
echo "exit $code" >&3
exec 3>&-
echo o >/proc/sysrq-trigger
# The devices disappear during the power-off, so nothing can be started any more. The first process
# must not end.
while :; do :; done
