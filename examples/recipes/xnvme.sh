# xNVMe's own tests of Flexible Data Placement, on both devices of the drive. The working directory
# is a copy of xNVMe's repository, built in its folder build, with tests/host/tools/cijoe_here.py.
set -e
# Older releases of Debian name the library so.
mkdir /tmp/lib
ln -s /usr/lib/x86_64-linux-gnu/libaio.so.1t64 /tmp/lib/libaio.so.1
# The program would give the drive to another driver, for a backend that these tests do not use.
printf '#!/bin/sh\n' >/usr/bin/xnvme-driver
chmod +x /usr/bin/xnvme-driver
export LD_LIBRARY_PATH="$PWD/build/lib:/tmp/lib" PATH="$PWD/build/tools:$PATH" PYTHONPATH="$PWD"
export XNVME_BLOCK=/dev/nvme0n1 XNVME_GENERIC=/dev/ng0n1
cd cijoe
python3 -m pytest -p cijoe_here -q -p no:cacheprovider tests/tools/test_fdp.py
