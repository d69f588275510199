# shellcheck shell=dash
# nvme-cli's own tests of drives (tests/ of its sources), one module after the other.

# shellcheck source-path=SCRIPTDIR source=lib.sh
. /host/lib.sh

mkdir "$SCRATCH/suite"
cp -r /host/source/tests "$SCRATCH/suite/"
cd "$SCRATCH/suite" || exit 1
# They take drives on PCI Express only, unless they are told not to look.
cat >tests/config.json <<END
{ "controller": "$(admin_device "$TRANSPORT")", "ns1": "$BLOCK", "log_dir": "$SCRATCH/logs/", "do_validate_pci_device": false }
END
for module in tests/nvme_*_test.py; do
    module=$(basename "$module" .py)
    PYTHONPATH=tests timeout 300 python3 -W ignore -m unittest -v "$module" >"$SCRATCH/log" 2>&1
    code=$?
    if [ $code != 0 ]; then
        echo "tests/$module failed $(grep -B 3 -E '^[A-Za-z]*Error' "$SCRATCH/log" | tr '\n' ' ')"
    elif grep -q '^OK (skipped' "$SCRATCH/log"; then
        echo "tests/$module skipped $(sed -n "s/.*skipped ['\"]because: *\(.*\)['\"]\$/\1/p" "$SCRATCH/log" | head -n 1)"
    else
        echo "tests/$module passed"
    fi
done | report
exit 0
