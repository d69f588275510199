# fio's own tests of Flexible Data Placement, as the job "FDP and verify-trim" of its workflow runs
# them. The working directory is a copy of fio's repository with a static fio.
set -e
# The tests call sudo. The guest's user is root.
printf '#!/bin/sh\nexec "$@"\n' >/usr/bin/sudo
chmod +x /usr/bin/sudo
nvme fdp status /dev/ng0n1 | head -n 1
python3 t/nvmept_fdp.py --fio ./fio --dut /dev/ng0n1 --artifact-root /tmp/fdp
python3 t/verify-trim.py --fio ./fio --dut /dev/nvme0n1 --artifact-root /tmp/trim
