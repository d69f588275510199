# shellcheck shell=bash
# Compares programs with their models. Each program runs in the guest on a drive without FDP and on
# a drive with FDP, below `warp capture`. Its capture and its model then run in the lab on the same
# device. The result has the counters of all three and the distance between the lifetimes of capture
# and model.
#
# The functions use WARP, WORK, TESTS, TRANSCRIPTS (the folder that keeps captures, or empty) and
# the functions of `run`.

PROGRAMS=$TESTS/measure/programs
# The smallest drive on which the programs' files are small against reclaim units, and those against
# the drive. A reclaim unit has 1 GiB at full size (1.25 MiB here). A program with larger files has
# its own line `# reclaim unit: SIZE`.
PROGRAM_DRIVE=(--device warp_default --capacity 256M --set gc.block_remapping=false)
PROGRAM_CAPACITY_BYTES=$((256 << 20))

# Prints the names of the programs.
programs() {
    local file
    for file in "$PROGRAMS"/*.toml; do
        basename "$file" .toml
    done
}

# `json_number KEY FILE` prints the first number with a key in JSON.
json_number() {
    grep -oE "\"$1\":[0-9.]+" "$2" | head -n 1 | cut -d : -f 2
}

# `in_the_lab WORKLOAD CAPACITIES ARGUMENTS...` prints host bytes and media bytes of a workload in
# the lab. The caller owns the variable drive.
in_the_lab() {
    local workload=$1 capacities=$2
    shift 2
    "$WARP" run "$workload" "${drive[@]}" --drive-writes "$capacities" --untimed --no-keep --out "$WORK/report" --json "$@" >"$WORK/lab"
    echo "$(json_number host_bytes_written "$WORK/lab") $(json_number media_bytes_written "$WORK/lab")"
}

# `run_program NAME fdp|none` runs a program with one placement and adds a line to $WORK/rows.
run_program() {
    local name=$1 placement=$2 status=0 fdp=on host media packages folder=$WORK/$1.$2 capacities replayed modelled none=() log_mib unit drive
    packages=$(sed -n 's/^# packages: //p' "$PROGRAMS/$name.sh")
    log_mib=$(sed -n 's/^# log: \(.*\) MiB/\1/p' "$PROGRAMS/$name.sh")
    unit=$(sed -n 's/^# reclaim unit: //p' "$PROGRAMS/$name.sh")
    drive=("${PROGRAM_DRIVE[@]}" --set "geometry.reclaim_unit_bytes=${unit:-1GiB}")
    [ "$placement" = fdp ] || fdp=off
    start_server vfio-user "${drive[@]}" --fdp $fdp --timing off --serial "$SERIAL"
    prepare_measurement program.sh <<<"TRANSPORTS=pcie DATA_MIB=$((PROGRAM_CAPACITY_BYTES / 1048576 - log_mib)) LOG_MIB=$log_mib PLACEMENT=$placement FORMAT_512=1"
    cat "$PROGRAMS/file_systems.sh" "$PROGRAMS/$name.sh" >"$WORK/host/program"
    guest_boot "$LIMIT_S" "$WORK/host" nvme_core.multipath=N --memory 2G --with "$packages" "${VFIO_USER[@]}" || status=$?
    boot_ended "$name, $placement" $status || true
    host=$(metric "$METRICS_PORT" warp_host_written_bytes_total)
    media=$(metric "$METRICS_PORT" warp_media_written_bytes_total)
    end_servers
    mkdir -p "$folder"
    [ -s "$WORK/host/capture.csv.zst" ] || return 0
    mv "$WORK/host/capture.csv.zst" "$folder/$name"
    sed "s/^/# /" "$WORK/host/output" | tail -n 3
    printf 'kind = "trace"\nplacement = "volume"\nfiles = ["%s"]\n' "$folder/$name" >"$folder/replay.toml"
    capacities=$(awk -v host="$host" -v capacity=$PROGRAM_CAPACITY_BYTES 'BEGIN { printf "%.4f", host / capacity }')
    [ "$placement" = fdp ] || none=(--set workload.placement=none)
    replayed=$(in_the_lab "$folder/replay.toml" "$capacities" "${none[@]}")
    # The model of a program with one handle already has no placement.
    ! grep -qx 'placement = false' "$PROGRAMS/$name.toml" || none=()
    modelled=$(in_the_lab "$PROGRAMS/$name.toml" "$capacities" "${none[@]}")
    "$WARP" lifetimes "$folder/replay.toml" "$PROGRAMS/$name.toml" "${drive[@]}" --drive-writes "$capacities" >"$folder/lifetimes"
    sed 's/^/# /' "$folder/lifetimes"
    echo "$name $placement $host $media $replayed $modelled $(sed -n 's/.*Kolmogorov.* is \([0-9.]*\), after.*/\1/p' "$folder/lifetimes")" >>"$WORK/rows"
    [ -z "$TRANSCRIPTS" ] || { mkdir -p "$TRANSCRIPTS" && cp "$folder/$name" "$TRANSCRIPTS/$name.$placement.csv.zst"; }
}

# Runs the programs named on the command line, or all of them.
run_programs() {
    local name placement names=("${ONLY[@]}")
    [ ${#names[@]} -gt 0 ] || mapfile -t names < <(programs)
    : >"$WORK/rows"
    for name in "${names[@]}"; do
        if ! [ -r "$PROGRAMS/$name.toml" ]; then
            echo "tests/host: there is no program $name. Give one of $(programs | paste -sd ' ')" >&2
            exit 2
        fi
        for placement in none fdp; do
            echo "# $name, placement: $placement"
            run_program "$name" "$placement"
        done
    done
    awk 'BEGIN { print "| program | placement | drive-writes | WAF: program | its trace | its model | lifetimes apart |\n|---|---|---|---|---|---|---|" }
        { printf "| %s | %s | %.1f | %.3f | %.3f | %.3f | %.3f |\n", $1, $2, $3 / '"$PROGRAM_CAPACITY_BYTES"', $4 / $3, $6 / $5, $8 / $7, $9 }' "$WORK/rows"
    while read -r name placement host media host_replayed media_replayed host_modelled media_modelled distance; do
        judge_program "$name, $placement: the trace's write amplification is the program's within 5 %" \
            "$host $media $host_replayed $media_replayed"
        judge_program "$name, $placement: the model's write amplification is the program's within 5 %" \
            "$host $media $host_modelled $media_modelled"
    done <"$WORK/rows"
}

# `judge_program WHAT "HOST MEDIA HOST MEDIA"` asserts that two write amplifications agree within 5
# %.
judge_program() {
    if awk '{ ratio = ($4 / $3) / ($2 / $1); exit !(ratio > 0.95 && ratio < 1.05) }' <<<"$2"; then
        on_report_line "ok - $1"
    else
        on_report_line "not ok - $1"
    fi
}
