#!/usr/bin/env bash
# Builds the files that a guest boots from: QEMU, a stock kernel, and a root file system with
# programs. All of them are unpacked from Debian packages into a cache directory.
#
#   Debian packages -> CACHE/system-HASH  QEMU with its libraries, vmlinux, initramfs (busybox,
#                                         modules, init)
#                   -> CACHE/tree-HASH    the guest's root file system: nvme-cli, fio, mkfs, fsck,
#                                         and the packages asked for
#
# HASH depends on the recipe, so a new recipe leaves existing directories alone. The script makes
# each directory under another name and renames it when it is complete. It downloads and unpacks
# packages but never configures them. It changes nothing else on the host, except for the few
# packages of `install_host_tools`. QEMU runs with its own loader and libraries, so the host's
# distribution does not matter. The script boots nothing.
#
#   build.sh CACHE INIT [PACKAGE...]      INIT is the program of the first process
#   build.sh --initramfs MODULES BUSYBOX INIT FILE
#                                         makes FILE, an initramfs with modules of MODULES, the
#                                         folder lib/modules/VERSION of another kernel
#
# The script prints lines for `warp guest`. `step WORDS` comes before each of STEPS slow steps,
# `problem SENTENCE` reports a failure, and `system DIRECTORY` and `tree DIRECTORY` come last. Exit
# status 0 means that both directories exist. Exit status 77 means that they cannot be built here.
set -euo pipefail
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"

if [ "$1" = --initramfs ]; then
    OWN_MODULES=$2 BUSYBOX=$3 INIT=$4 OWN_INITRAMFS=$5
    shift 5
else
    CACHE=$1 INIT=$2
    shift 2
fi
# vfio-user needs QEMU 10.1 or later, so QEMU and the kernel come from the backports of a stable
# release.
SYSTEM_SUITES=${WARP_SYSTEM_SUITES:-trixie trixie-backports}
SYSTEM_PACKAGES=qemu-system-x86,linux-image-amd64,busybox-static
# nvme-cli and fio must support FDP well, so they come from a newer release.
TOOLS_SUITES=${WARP_TOOLS_SUITES:-forky}
TOOLS_PACKAGES=$(printf '%s\n' nvme-cli fio e2fsprogs f2fs-tools xfsprogs "$@" | sort -u | paste -sd ,)
# Kernel modules of the guest. Their dependencies are copied too.
MODULES="virtio_console 9p 9pnet_virtio overlay nvme virtio_net nvme-tcp ext4 f2fs xfs btrfs crc32c-cryptoapi crc32c-intel
raid0 raid1 raid10 raid456 dm-mod ublk_drv"
# Increase VERSION when this script makes something else of the same packages.
VERSION=3
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# Disk space of both directories, including temporary files of the build.
ROOM_MB=900
# Host identifier of the guest for NVMe over Fabrics.
IDENTIFIER=4ae71336-e44b-49bf-b9d2-752e234818a5

unavailable() {
    echo "problem $*"
    exit 77
}

# The recipes are the inputs of the hashes.
system_recipe() {
    printf '%s\n' "$SYSTEM_SUITES" "$SYSTEM_PACKAGES" "$MODULES" "$VERSION"
    cat "$INIT"
}

tree_recipe() {
    printf '%s\n' "$SYSTEM_SUITES" "$TOOLS_SUITES" "$TOOLS_PACKAGES" "$VERSION"
}

hash_of() {
    "$1" | sha256sum | head -c 12
}

# Prints the Debian mirror of WARP_DEBIAN_MIRROR or of the host's package manager.
mirror() {
    local found=${WARP_DEBIAN_MIRROR:-} sources=/etc/apt/sources.list.d
    [ -n "$found" ] || found=$(cat "$sources"/*.sources 2>/dev/null |
        awk '$1 == "URIs:" { for (i = 2; i <= NF; i++) if ($i ~ /\/debian\/?$/) { print $i; exit } }')
    [ -n "$found" ] || found=$(cat /etc/apt/sources.list "$sources"/*.list 2>/dev/null |
        awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http.*\/debian\/?$/) { print $i; exit } }')
    printf '%s' "$found"
}

# Installs the host programs that unpack and pack.
install_host_tools() {
    local pair missing=()
    for pair in mmdebstrap:mmdebstrap zstd:zstd xz:xz-utils cpio:cpio depmod:kmod; do
        command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
    done
    [ -e "$KEYRING" ] || missing+=(debian-archive-keyring)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || unavailable "apt-get is missing, so ${missing[*]} cannot be installed"
    echo "step installing ${missing[*]} on this machine"
    timeout 120 apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive timeout 300 \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
        unavailable "apt-get cannot install ${missing[*]}. Check the network"
}

# `explain LOG MIRROR` says why packages could not be unpacked.
explain() {
    local unknown message
    if grep -qE 'No space left on device|enough free space' "$1"; then
        unavailable "$CACHE is full. Free $ROOM_MB MB there, or set WARP_GUEST_CACHE to another folder"
    fi
    unknown=$(sed -n 's/^E: Unable to locate package //p; s/^E: Package .\(.*\). has no installation candidate/\1/p' "$1" |
        sort -u | paste -sd ' ')
    [ -z "$unknown" ] || unavailable "Debian ($TOOLS_SUITES) has no package $unknown"
    message=$(sed "s#$2#MIRROR#g" "$1" | grep -m 1 '^E:' || echo "mmdebstrap failed")
    unavailable "the Debian packages cannot be downloaded ($message). Check the network"
}

# `unpack DIRECTORY PACKAGES "SUITES"` downloads and unpacks packages.
unpack() {
    local directory=$1 packages=$2 suites=$3 mirror suite sources=() log=$1.log
    mirror=$(mirror)
    [ -n "$mirror" ] || unavailable "the apt sources contain no Debian mirror. Set WARP_DEBIAN_MIRROR to one"
    for suite in $suites; do
        sources+=("deb [signed-by=$KEYRING] $mirror $suite main")
    done
    # QEMU and the kernel come from the backports if there are any. A release in development may
    # have old indexes.
    # shellcheck disable=SC2016  # $1 is the hook's own argument
    timeout --foreground 540 mmdebstrap --variant=extract --include="$packages" \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "3"' \
        --setup-hook='mkdir -p "$1/etc/apt/preferences.d"
            printf "Package: qemu-* seabios linux-*\nPin: release n=*-backports\nPin-Priority: 900\n" \
                >"$1/etc/apt/preferences.d/backports"' \
        "${suites%% *}" "$directory" "${sources[@]}" >"$log" 2>&1 || explain "$log" "$mirror"
    # Both contain the mirror's name.
    rm -rf "$log" "${directory:?}/etc/apt" "${directory:?}/var"
}

# Copies a kernel module, uncompressed, after its dependencies. The callers own the variables
# path_of, copied, modules and root.
copy_module() {
    local name=${1//-/_} file needed to
    file=${path_of[$name]:-}
    # A module without a file is built into the kernel.
    [ -n "$file" ] && [ -z "${copied[$name]:-}" ] || return 0
    copied[$name]=1
    for needed in $(modinfo -F depends "$file" | tr , ' '); do
        copy_module "$needed"
    done
    to=$root/lib/modules/$(basename "$modules")/${file#"$modules"/}
    to=${to%.xz}
    to=${to%.zst}
    mkdir -p "$(dirname "$to")"
    case $file in
    *.xz) xz -dc "$file" >"$to" ;;
    *.zst) zstd -dcq "$file" >"$to" ;;
    *) cp "$file" "$to" ;;
    esac
}

copy_modules() {
    local modules=$1 root=$2 version file name
    local -A path_of=() copied=()
    version=$(basename "$modules")
    while read -r file; do
        name=$(basename "$file")
        name=${name%%.ko*}
        path_of[${name//-/_}]=$file
    done < <(find "$modules/kernel" -name '*.ko*')
    for name in $MODULES; do
        copy_module "$name"
    done
    cp "$modules"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
    depmod -b "$root" "$version"
}

# `make_initramfs MODULES BUSYBOX DIRECTORY FILE` packs busybox, the first program and the modules.
make_initramfs() {
    local modules=$1 busybox=$2 root=$3 file=$4
    mkdir -p "$root"/{bin,sbin,lib,proc,dev,root}
    cp "$busybox" "$root/bin/"
    install -m 755 "$INIT" "$root/init"
    copy_modules "$modules" "$root"
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$file"
}

# Extracts the kernel from its compressed image. An uncompressed kernel boots seconds sooner under
# emulation.
extract_kernel() {
    local image=$1 kernel=$2 offset
    while read -r offset; do
        tail -c "+$((offset + 1))" "$image" | zstd -dcq >"$kernel" 2>/dev/null || true
        [ "$(head -c 4 "$kernel" | tail -c 3)" != ELF ] || return 0
    done < <(grep -obUaP '\x28\xb5\x2f\xfd' "$image" | cut -d: -f1)
    cp "$image" "$kernel"
}

# `make_system DIRECTORY` makes QEMU, the kernel and the initial RAM file system.
make_system() {
    local directory=$1 modules image root=$1/initramfs.d
    echo "step downloading and unpacking QEMU and the kernel"
    unpack "$directory" "$SYSTEM_PACKAGES" "$SYSTEM_SUITES"
    echo "step packing the kernel and its modules"
    modules=$(echo "$directory"/usr/lib/modules/*)
    make_initramfs "$modules" "$directory/usr/bin/busybox" "$root" "$directory/initramfs"
    for image in "$modules/vmlinuz" "$directory/boot/vmlinuz-$(basename "$modules")"; do
        [ ! -e "$image" ] || extract_kernel "$image" "$directory/vmlinux"
    done
    [ -s "$directory/vmlinux" ] || unavailable "the kernel's package has no vmlinuz"
    # The guest loads few modules, and the others are most of the unpacked kernel.
    rm -rf "$root" "$directory/usr/lib/modules" "$directory/boot"
}

# `make_tree DIRECTORY` makes the guest's root file system.
make_tree() {
    local directory=$1 busybox=$SYSTEM/usr/bin/busybox name folder
    echo "step downloading and unpacking ${TOOLS_PACKAGES//,/, }"
    unpack "$directory" "$TOOLS_PACKAGES" "$TOOLS_SUITES"
    echo "step finishing the guest's file system"
    mkdir -p "$directory"/{proc,sys,dev,run,tmp,root,mnt,shared,warp,etc/nvme,usr/lib/modules,var/{lib,log,tmp,cache}}
    for folder in bin sbin lib lib64; do
        [ -e "$directory/$folder" ] || ln -s "usr/$folder" "$directory/$folder"
    done
    ln -sfn /run "$directory/var/run"
    cp "$busybox" "$directory/usr/bin/busybox"
    # Busybox provides the small programs that no package contains.
    for name in $("$busybox" --list); do
        [ -e "$directory/usr/bin/$name" ] || [ -e "$directory/usr/sbin/$name" ] ||
            ln -sf busybox "$directory/usr/bin/$name"
    done
    # The kernel looks for modprobe here.
    ln -sf ../bin/busybox "$directory/usr/sbin/modprobe"
    # Packages that were not configured made no users, and some servers do not run as root.
    printf '%s\n' root:x:0:0:root:/root:/bin/sh guest:x:1000:1000:guest:/tmp:/bin/sh \
        nobody:x:65534:65534:nobody:/nonexistent:/bin/false >"$directory/etc/passwd"
    printf '%s\n' root:x:0: guest:x:1000: nogroup:x:65534: >"$directory/etc/group"
    printf '%s\n' "127.0.0.1 localhost guest" "10.0.2.2 host" >"$directory/etc/hosts"
    ln -sf /proc/self/mounts "$directory/etc/mtab"
    echo "$IDENTIFIER" >"$directory/etc/nvme/hostid"
    echo "nqn.2014-08.org.nvmexpress:uuid:$IDENTIFIER" >"$directory/etc/nvme/hostnqn"
}

system_is_whole() {
    [ -s "$SYSTEM/vmlinux" ] && [ -s "$SYSTEM/initramfs" ] && [ -x "$SYSTEM/usr/bin/qemu-system-x86_64" ]
}

tree_is_whole() {
    [ -x "$TREE/usr/sbin/nvme" ] && [ -x "$TREE/usr/bin/busybox" ]
}

# `make DIRECTORY system|tree` makes a directory completely or not at all.
make() {
    local directory=$1 what=$2
    ! "${what}_is_whole" || return 0
    # An incomplete directory was changed by somebody else.
    rm -rf "$directory"
    "make_$what" "$directory.partial"
    "${what}_recipe" >"$directory.partial/recipe"
    mv "$directory.partial" "$directory"
}

show() {
    printf '%s\n' "system $SYSTEM" "tree $TREE"
}

if [ -n "${OWN_MODULES:-}" ]; then
    [ -d "$OWN_MODULES/kernel" ] ||
        unavailable "$OWN_MODULES has no folder kernel. Give --modules the folder lib/modules/VERSION of the kernel"
    install_host_tools
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    make_initramfs "$OWN_MODULES" "$BUSYBOX" "$work" "$OWN_INITRAMFS"
    exit
fi
[ "$(uname -sm)" = "Linux x86_64" ] || unavailable "it needs Linux on x86-64, but this is $(uname -sm)"
SYSTEM=$CACHE/system-$(hash_of system_recipe)
TREE=$CACHE/tree-$(hash_of tree_recipe)
system_is_whole && tree_is_whole && show && exit
[ "$(id -u)" = 0 ] || unavailable "the first build unpacks Debian packages into $CACHE, which needs root"
mkdir -p "$CACHE" 2>/dev/null || unavailable "$CACHE cannot be created. Set WARP_GUEST_CACHE to another folder"
# Two runs at the same time build only once.
exec 9>"$CACHE/lock"
flock --nonblock 9 || { echo "step waiting for another build in $CACHE" && flock 9; }
system_is_whole && tree_is_whole && show && exit
# Remains of a build that was killed.
rm -rf "$CACHE"/*.partial*
trap 'rm -rf "$CACHE"/*.partial*' EXIT
[ "$(df -Pm "$CACHE" | awk 'END { print $4 }')" -ge "$ROOM_MB" ] ||
    unavailable "$CACHE has less than $ROOM_MB MB free. Set WARP_GUEST_CACHE to another folder"
install_host_tools
make "$SYSTEM" system
make "$TREE" tree
show
