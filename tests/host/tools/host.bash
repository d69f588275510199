# shellcheck shell=bash
# Test suites of other projects on the drive, in guests: one boot and one fresh drive for each transport.
#
# Uses: TESTS, WORK, DRIVE, SOURCE (the folder of --source, or empty), guest_boot, boot_ended, prepare_measurement. The sources
# are never part of this project: those of fio and nvme-cli are Debian's, of the release that the guest's programs come from,
# in the guest's cache; all others are the user's own copy.

# A Debian mirror, as this machine's package manager has it.
debian_mirror() {
    # shellcheck disable=SC2016  # the package manager's own words
    echo "${WARP_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
        grep -m 1 '/debian/*$')}"
}

# Downloads what Debian's package of a program is made from, unless it is there: PROGRAM ; prints its folder.
debian_source() {
    local cache=${TREE%/*}/sources/$1 state=$WORK/apt apt
    if [ ! -d "$cache" ]; then
        mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/source" "${cache%/*}"
        echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror)" \
            "${WARP_TOOLS_SUITES:-forky} main" >"$state/list"
        apt=(apt-get -q -o Dir::Etc::sourcelist="$state/list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$state/lists"
            -o Dir::Cache="$state/cache" -o Acquire::Check-Valid-Until=false)
        { "${apt[@]}" update && cd "$state" && "${apt[@]}" source --download-only --tar-only "$1"; } >"$state/log" 2>&1 ||
            { tail -n 3 "$state/log" >&2 && return 1; }
        tar -x -C "$state/source" --strip-components=1 -f "$state"/*.orig.tar.?z
        # Whole or not at all.
        mv "$state/source" "$cache.partial" && mv "$cache.partial" "$cache"
    fi
    echo "$cache"
}

# Debian packages that a suite needs in the guest besides what is there: TOOL
tool_packages() {
    case $1 in
    blktests) echo "bash,coreutils,util-linux,gawk,udev,ethtool,xfsprogs,btrfs-progs,procps,sed,grep" ;;
    xnvme) echo "python3-pytest,python3-yaml,liburing2,libaio1t64" ;;
    *) echo "nvme-cli" ;;
    esac
}

# The folder of a suite: TOOL
tool_source() {
    case $1 in
    fio | nvme-cli) [ -n "$SOURCE" ] || { debian_source "$1" && return; } ;;
    esac
    [ -d "$SOURCE" ] || {
        echo "Debian has no sources of $1. Give a copy of its repository with --source FOLDER (tests/host/README.md lists them)" >&2
        return 1
    }
    echo "$SOURCE"
}

# The part of a suite that a guest needs, into /host/source: TOOL FOLDER
copy_tool() {
    local to=$WORK/host/source part
    mkdir "$to"
    case $1 in
    fio) set -- "$2" t fio ;;
    nvme-cli) set -- "$2" tests .build/nvme ;;
    blktests) set -- "$2" check common tests src ;;
    xnvme) set -- "$2" cijoe/tests build/lib build/tests build/tools ;;
    esac
    for part in "${@:2}"; do
        [ ! -e "$1/$part" ] || (cd "$1" && cp -r --parents --no-preserve=ownership "$part" "$to")
    done
}

run_tool() { # TOOL
    local tool=$1 source transport status
    source=$(tool_source "$tool") || exit 2
    for transport in pcie tcp; do
        echo "# $tool, $transport"
        status=0
        DRIVE=(--device warp_default --capacity 2G --timing off --transport "${transport/pcie/vfio-user}")
        prepare_measurement "../tools/$tool.sh" <<<"TOOL=$tool TRANSPORT=$transport SERIAL=WARP0001"
        cp "$TESTS/tools/lib.sh" "$TESTS/tools/known" "$TESTS/tools/cijoe_here.py" "$WORK/host/"
        copy_tool "$tool" "$source"
        guest_boot "$LIMIT_S" "$WORK/host" nvme_core.multipath=N --memory 2G --with "$(tool_packages "$tool")" || status=$?
        boot_ended "$tool, $transport" "$status" || true
    done
}
