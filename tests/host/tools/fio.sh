# shellcheck shell=dash
# Runs fio's own tests of drives (t/ of its sources) with the fio that was built in that folder, or
# with the guest's.

# shellcheck source-path=SCRIPTDIR source=lib.sh
. /host/lib.sh

use_program fio /host/source/fio || exit 0
cp -r /host/source/t "$SCRATCH/t"
for script in nvmept nvmept_fdp nvmept_trim nvmept_write_mode nvmept_streams nvmept_pi io_uring_pi io_uring_cmd; do
    [ -e "$SCRATCH/t/$script.py" ] || continue
    read -r started _ </proc/uptime
    timeout 1200 python3 "$SCRATCH/t/$script.py" --fio "$PROGRAM" --dut "$GENERIC" --artifact-root "$SCRATCH/$script" \
        >"$SCRATCH/log" 2>&1
    code=$?
    read -r now _ </proc/uptime
    echo "# $script took $((${now%.*} - ${started%.*})) s" >&2
    sed -nE "s/^Test ([0-9]+) PASSED.*/$script\/\1 passed/p; s/^Test ([0-9]+) SKIPPED *(.*)/$script\/\1 skipped \2/p
        s/^Test ([0-9]+) FAILED: *(.*)/$script\/\1 failed \2/p" "$SCRATCH/log" >"$SCRATCH/found"
    if [ -s "$SCRATCH/found" ]; then
        cat "$SCRATCH/found"
    elif [ $code != 0 ]; then
        echo "$script/all failed $(grep -E '^(ERROR|[A-Za-z]*Error)' "$SCRATCH/log" | tail -n 1)"
    fi
done | report
exit 0
