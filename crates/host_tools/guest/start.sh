# shellcheck shell=dash
# The second half of the guest's start, in its own root file system: attaches the drive, runs /warp/command with its output on
# ports of the host, says how it ended, and powers off.
#
# /warp/parameters holds NAMESPACE (a block device to wait for), CONNECT (arguments of nvme connect), SHELL_SIZE (rows and
# columns of a terminal; empty: no shell).
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/warp/bin HOME=/root
# shellcheck disable=SC1091  # made for each boot
. /warp/parameters
mkdir -p /dev/shm /dev/pts
# Where shells look for the files that a process has open; a device manager would make them.
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
# No default route: the guest reaches the host's own loopback addresses (10.0.2.2) and nothing else.
[ -d /sys/class/net/eth0 ] && ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up

# The device of the virtio serial port of a name: NAME
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
if [ -n "$CONNECT" ]; then
    # shellcheck disable=SC2086  # words
    connected=$(nvme connect $CONNECT 2>&1) || fail "nvme connect $CONNECT failed: $connected"
fi
tries=0
while [ -n "$NAMESPACE" ] && ! [ -b "/dev/$NAMESPACE" ]; do
    [ "$tries" -lt 300 ] || { fail "/dev/$NAMESPACE did not appear within 30 s" && break; }
    tries=$((tries + 1))
    sleep 0.1
done
read -r seconds _ </proc/uptime
echo "up $seconds" >&3
cd /shared || exit
if [ -n "$SHELL_SIZE" ]; then
    # The terminal forgets its size when nobody has it open.
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
# The devices go while the power goes: nothing can be started any more, and this process must not end.
while :; do :; done
