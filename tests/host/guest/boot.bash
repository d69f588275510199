# shellcheck shell=bash
# Boots the guest and hands on what /host/main in it prints.
#
#   a directory of files -> initial RAM file system -> QEMU -> report port -> on_report_line
#
# It does not know what runs in the guest, nor where its drives come from.
#
# Uses: CACHE (made by guest/build), WORK (a temporary directory), on_report_line (called with each line). Keeps in QEMU_PID
# the process to end on the way out.

GUEST_MEMORY=${WARP_GUEST_MEMORY:-1G}
GUEST_PROCESSORS=2
QEMU=("$CACHE/system/usr/lib64/ld-linux-x86-64.so.2" --library-path "$CACHE/system/usr/lib/x86_64-linux-gnu"
    "$CACHE/system/usr/bin/qemu-system-x86_64" -L "$CACHE/system/usr/share/qemu" -L "$CACHE/system/usr/share/seabios")
QEMU_PID=
# The guest's name on fabrics, as in its /etc/nvme/hostnqn.
# shellcheck disable=SC2034  # for the callers
GUEST_NQN=nqn.2014-08.org.nvmexpress:uuid:4ae71336-e44b-49bf-b9d2-752e234818a5

# Sets `accelerator`. A hypervisor without hardware support, which some virtual machines offer, cannot run this kernel.
guest_accelerator() {
    if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
        accelerator=(-accel kvm -cpu host)
    else
        accelerator=(-accel "tcg,thread=multi" -cpu "max,la57=off")
    fi
}

# Boots: TIME-LIMIT-SECONDS DIRECTORY KERNEL-ARGUMENTS QEMU-ARGUMENTS...
# The directory becomes /host in the guest. Exit status: that of /host/main; 124 if the time
# was up; 125 if the guest died before it was done. The console is in $WORK/console, QEMU's own words in $WORK/qemu.
guest_boot() {
    local limit_s=$1 directory=$2 kernel_arguments=$3 line status='' accelerator=() report
    shift 3
    rm -rf "$WORK/overlay"
    mkdir "$WORK/overlay"
    cp -r "$directory" "$WORK/overlay/host"
    install -m 755 "$TESTS/guest/init" "$WORK/overlay/init"
    (cd "$WORK/overlay" && find . | cpio -o -H newc --quiet) | cat "$CACHE/base.cpio" - >"$WORK/initrd"
    guest_accelerator
    # A device in another process sees the guest's memory only if that is a shared memory file.
    exec {report}< <(exec timeout -k 5 "$limit_s" "${QEMU[@]}" \
        -M q35,hpet=off,smm=off,vmport=off,memory-backend=ram \
        -object "memory-backend-memfd,id=ram,size=$GUEST_MEMORY,share=on" \
        "${accelerator[@]}" -m "$GUEST_MEMORY" -smp "$GUEST_PROCESSORS" \
        -nodefaults -no-user-config -display none -no-reboot \
        -chardev file,id=report,path=/dev/stdout \
        -device virtio-serial-pci -device virtserialport,chardev=report,name=report \
        -serial "file:$WORK/console" -kernel "$CACHE/vmlinux" -initrd "$WORK/initrd" \
        -append "console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr $kernel_arguments" \
        "$@" </dev/null 2>"$WORK/qemu")
    QEMU_PID=$!
    while IFS= read -r line <&"$report"; do
        case $line in
        @@exit\ *) status=${line#@@exit } ;;
        *) on_report_line "$line" ;;
        esac
    done
    exec {report}<&-
    local ended=0
    wait "$QEMU_PID" || ended=$?
    QEMU_PID=
    if [ -n "$status" ]; then
        return "$status"
    elif [ "$ended" = 124 ] || [ "$ended" = 137 ]; then
        return 124
    fi
    return 125
}
