# shellcheck shell=dash
# Runs xNVMe's pytest tests of its commands and library on both devices of a namespace. The tests
# run commands on other machines through a runner. Here the runner is cijoe_here.py, which runs the
# commands in the guest.

# shellcheck source-path=SCRIPTDIR source=lib.sh
. /host/lib.sh

# Older releases of Debian name the library so.
mkdir -p "$SCRATCH/lib"
ln -s /usr/lib/x86_64-linux-gnu/libaio.so.1t64 "$SCRATCH/lib/libaio.so.1"
export LD_LIBRARY_PATH=/host/source/build/lib:$SCRATCH/lib PATH=/host/source/build/tests:/host/source/build/tools:$PATH
export XNVME_BLOCK=$BLOCK XNVME_GENERIC=$GENERIC
# The program would give the drive to another driver, for a backend that these tests do not use.
printf '#!/bin/sh\n' >/usr/local/bin/xnvme-driver
chmod +x /usr/local/bin/xnvme-driver
mkdir -p "$SCRATCH/suite"
cp -r /host/source/cijoe/tests "$SCRATCH/suite/"
cp /host/cijoe_here.py "$SCRATCH/suite/"
cd "$SCRATCH/suite" || exit 1
# Some tests are left out. tests/lblk.c takes bytes for blocks (line 333) and writes 5 TiB of
# zeroes, and its other tests write 256 MiB in pieces of 12 KiB. The rest of `logic` tests
# asynchronous backends and not the drive.
PYTHONPATH=. timeout 2400 python3 -m pytest -p cijoe_here -q -rA -p no:cacheprovider tests/tools/test_fdp.py tests/tools/test_lblk.py \
    tests/tools/test_xnvme.py tests/logic/test_xnvme_tests_enum.py tests/logic/test_xnvme_tests_scc.py \
    tests/logic/test_xnvme_tests_compare.py tests/logic/test_xnvme_tests_copy.py >"$SCRATCH/log" 2>&1
tail -n 1 "$SCRATCH/log" | sed 's/^/# /'
grep -m 5 '^E  ' "$SCRATCH/log" | sed 's/^/# /'
# Skipped tests are for other kinds of drives and for backends that do not exist here.
sed -nE 's/^(PASSED|FAILED|ERROR) ([^ ]*\/)?test_([a-z_]+)\.py::([^ ]+)( - (.*))?$/\3 \1 \4 \6/p' "$SCRATCH/log" |
    awk '{ result = $2 == "PASSED" ? "passed" : "failed"; name = $1 "/" $3; $1 = $2 = $3 = ""; print name, result, $0 }' | report
exit 0
