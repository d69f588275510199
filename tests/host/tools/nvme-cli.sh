# shellcheck shell=dash
# Runs nvme-cli's own tests of drives, one module after the other. They are in tests/e2e of its
# sources, and in tests/ before August 2026. They run with the nvme of the folder `.build`, or with
# the guest's.

# shellcheck source-path=SCRIPTDIR source=lib.sh
. /host/lib.sh

use_program nvme /host/source/.build/nvme || exit 0
mkdir "$SCRATCH/suite"
cp -r /host/source/tests "$SCRATCH/suite/"
cd "$SCRATCH/suite" || exit 1
# The tests accept only PCI Express drives, unless this check is off.
NVME_E2E_CONFIG=$(
    cat <<END
{ "controller": "$(admin_device "$TRANSPORT")", "ns1": "$BLOCK", "log_dir": "$SCRATCH/logs/", "do_validate_pci_device": false }
END
)
export NVME_E2E_CONFIG
if [ -d tests/e2e ]; then
    folder=tests/e2e package=tests.e2e. path=.
else
    folder=tests package='' path=tests
    echo "$NVME_E2E_CONFIG" >tests/config.json
fi
for module in "$folder"/nvme_*_test.py; do
    module=$(basename "$module" .py)
    PYTHONPATH=$path timeout 300 python3 -W ignore -m unittest -v "$package$module" >"$SCRATCH/log" 2>&1
    code=$?
    if [ $code != 0 ]; then
        echo "tests/$module failed $(grep -B 3 -E '^[A-Za-z]*Error' "$SCRATCH/log" | tr '\n' ' ')"
    elif grep -q '^OK (skipped' "$SCRATCH/log"; then
        echo "tests/$module skipped $(sed -n "s/.*skipped ['\"]\(because: *\)\{0,1\}\(.*\)['\"]\$/\2/p" "$SCRATCH/log" | head -n 1)"
    else
        echo "tests/$module passed"
    fi
done | report
exit 0
