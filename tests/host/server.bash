# shellcheck shell=bash
# Starts and ends `warp serve`.
#
# The functions use WARP, WORK, TESTS, SERVER_PIDS, PAGE_PID and STUDIO_PORT. They set TCP_PORT,
# METRICS_PORT and VFIO_USER (arguments of `warp guest` that attach the drive).

SOCKET=$WORK/drive.sock

# Clients with the token may read metrics and activate fault plans.
TOKEN=$(head -c 24 /dev/urandom | base64)
(umask 077 && echo "$TOKEN" >"$WORK/token")

# Prints a free TCP port of 127.0.0.1.
free_port() {
    local port
    while :; do
        port=$((RANDOM % 20000 + 20000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# `start_server vfio-user|tcp|both ARGUMENTS...` starts a server and waits until it serves.
start_server() {
    local transports=$1 arguments=() tries pid
    shift
    if [ "$transports" != tcp ]; then
        rm -f "$SOCKET"
        arguments+=(--vfio-user "$SOCKET")
        # shellcheck disable=SC2034  # for the callers
        VFIO_USER=(--qemu=-device --qemu="{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"$SOCKET\"}}")
    fi
    if [ "$transports" != vfio-user ]; then
        TCP_PORT=$(free_port)
        arguments+=(--tcp "127.0.0.1:$TCP_PORT")
    fi
    METRICS_PORT=$(free_port)
    arguments+=(--metrics "127.0.0.1:$METRICS_PORT" --metrics-token "$WORK/token")
    "$WARP" serve "$@" "${arguments[@]}" </dev/null >>"$WORK/server" 2>&1 &
    pid=$!
    SERVER_PIDS+=("$pid")
    for ((tries = 0; tries < 300; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        if { [ "$transports" = tcp ] || [ -S "$SOCKET" ]; } &&
            { [ "$transports" = vfio-user ] || (: <"/dev/tcp/127.0.0.1/$TCP_PORT") 2>/dev/null; }; then
            return
        fi
        sleep 0.1
    done
    on_report_line "not ok - the server serves within 30 s: warp serve $* ${arguments[*]}"
    show_server_log
    summary
}

# `metric METRICS-PORT NAME` prints a counter of a server.
metric() {
    exec 9<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET /metrics HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n' "$TOKEN" >&9
    awk -v name="$2" '$1 == name { print $2 }' <&9
    exec 9>&-
}

# `plan_faults NAME|none` activates a plan of faults/ on the last server, or ends the active plan.
plan_faults() {
    local plan=("$TESTS/faults/$1.toml")
    [ "$1" != none ] || plan=(--clear)
    "$WARP" drive faults "127.0.0.1:$METRICS_PORT" --token "$WORK/token" "${plan[@]}" >"$WORK/faults" 2>&1 ||
        on_report_line "not ok - the server takes the plan $1: $(cat "$WORK/faults")"
}

# Opens the page of the last server's drive, in Chromium if it is installed, or else in page.py. The
# guest sees the shown values in /host/page.
open_page() {
    local web=$TESTS/../../crates/studio/web watch=()
    close_page
    rm -rf "$WORK/host/page"
    mkdir "$WORK/host/page"
    if [ -x "${CHROMIUM:-/usr/bin/chromium}" ] && [ -d "$web/node_modules/playwright-core" ] && command -v node >/dev/null; then
        watch=(node "$web/dev/watch.mjs")
    elif command -v python3 >/dev/null; then
        watch=(python3 "$TESTS/page.py")
    else
        echo none >"$WORK/host/page/open"
        return
    fi
    "${watch[@]}" "http://127.0.0.1:$STUDIO_PORT/" "$WORK/token" "$WORK/host/page" </dev/null >"$WORK/page" 2>&1 &
    PAGE_PID=$!
}

close_page() {
    [ -n "$PAGE_PID" ] || return 0
    kill "$PAGE_PID" 2>/dev/null || true
    wait "$PAGE_PID" 2>/dev/null || true
    PAGE_PID=
    sed 's/^/# page: /' "$WORK/page"
}

# Ends the last server in an orderly way, which must succeed.
stop_server() {
    local pid=${SERVER_PIDS[-1]} status=0 tries
    unset 'SERVER_PIDS[-1]'
    kill -TERM "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 300; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if ((tries == 300)); then
        kill -KILL "$pid" 2>/dev/null || true
    fi
    wait "$pid" || status=$?
    if [ "$status" = 0 ]; then
        on_report_line "ok - the server ends in an orderly way"
    else
        on_report_line "not ok - the server ends in an orderly way, it ended with status $status"
    fi
}

# Kills the last server at the guest's request.
kill_server() {
    kill -KILL "${SERVER_PIDS[-1]}" 2>/dev/null || true
}

reap_killed_server() {
    local pid=${SERVER_PIDS[-1]}
    kill_server
    unset 'SERVER_PIDS[-1]'
    wait "$pid" 2>/dev/null || true
}

# Kills all servers.
end_servers() {
    while [ ${#SERVER_PIDS[@]} -gt 0 ]; do
        reap_killed_server
    done
}

show_server_log() {
    [ ! -s "$WORK/server" ] || tail -n 40 "$WORK/server" | tr '\r' '\n' | tail -n 40 | sed 's/^/# server: /'
}
