#!/bin/sh
# Installs the static `warp` of a release. WARP_RELEASES is the address of the folder with its files.
#
#   WARP_RELEASES=ADDRESS install.sh [FOLDER]    default: /usr/local/bin if writable, else ~/.local/bin
set -eu
fail() { echo "install.sh: $*" >&2 && exit 1; }
from=${WARP_RELEASES:-}
[ -n "$from" ] || fail "set WARP_RELEASES to the address of a release's files, such as https://HOST/warp/v0.1.0"
machine=$(uname -m)
case $(uname -s)-$machine in
Linux-x86_64 | Linux-aarch64) ;;
*) fail "the release is for Linux on x86_64 and aarch64, but this is $(uname -sm)" ;;
esac
folder=${1:-/usr/local/bin}
[ $# -gt 0 ] || [ -w "$folder" ] || folder=$HOME/.local/bin
mkdir -p "$folder" 2>/dev/null && part=$(mktemp -d "$folder/.warp.XXXXXX" 2>/dev/null) ||
    fail "$folder is not writable. Give another folder as the argument"
trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT TERM HUP
fetch() {
    if command -v curl; then curl -fsSL -o "$part/$1" "$from/$1"; else wget -qO "$part/$1" "$from/$1"; fi >/dev/null 2>&1 ||
        fail "cannot fetch $from/$1. Install curl or wget, and check WARP_RELEASES"
}
fetch SHA256SUMS
file=$(sed -n 's/^[0-9a-f]*  \(warp-[0-9][0-9A-Za-z.+-]*-'"$machine"'-linux\)$/\1/p' "$part/SHA256SUMS" | head -n 1)
[ -n "$file" ] || fail "$from/SHA256SUMS names no static command for $machine"
fetch "$file"
(cd "$part" && grep "  $file\$" SHA256SUMS | sha256sum -c >/dev/null 2>&1) ||
    fail "the checksum of $file is wrong. Nothing was installed. Fetch it again"
chmod 755 "$part/$file"
version=$("$part/$file" --version) || fail "$file does not run on this machine. Nothing was installed"
mv "$part/$file" "$folder/warp"
echo "installed $version as $folder/warp"
case :$PATH: in *":$folder:"*) ;; *) echo "add $folder to PATH" ;; esac
