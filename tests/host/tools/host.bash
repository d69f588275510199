# shellcheck shell=bash
# Runs test suites of other projects on the drive, with one boot and one fresh drive for each
# transport.
#
# The functions use TESTS, WORK, DRIVE, SOURCE (the folder of --source, or empty), guest_boot,
# boot_ended and prepare_measurement. The sources are no part of this project. Those of fio and
# nvme-cli come from Debian, of the same release as the guest's programs, and are in the guest's
# cache. The user provides the sources of the others.

# Prints the Debian mirror of this machine's package manager.
debian_mirror() {
    # shellcheck disable=SC2016  # the package manager's own words
    echo "${WARP_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
        grep -m 1 '/debian/*$')}"
}

# `debian_source PROGRAM` prints the folder of a program's Debian sources. It downloads them if the
# folder does not exist.
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
        # The rename makes the folder completely or not at all.
        mv "$state/source" "$cache.partial" && mv "$cache.partial" "$cache"
    fi
    echo "$cache"
}

# `tool_packages TOOL` prints the Debian packages that a suite also needs in the guest.
tool_packages() {
    case $1 in
    blktests) echo "bash,coreutils,util-linux,gawk,udev,ethtool,xfsprogs,btrfs-progs,procps,sed,grep" ;;
    xnvme) echo "python3-pytest,python3-yaml,liburing2,libaio1t64" ;;
    *) echo "nvme-cli" ;;
    esac
}

# `tool_source TOOL` prints the folder of a suite.
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

# `copy_tool TOOL FOLDER` copies the part of a suite that a guest needs to /host/source.
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
