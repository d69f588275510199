// A served drive: what hosts do with it now, its units, handles, events, and what may be done to it.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Curves } from "../curves/Curves.tsx";
import { EventLog } from "../parts/EventLog.tsx";
import { Notice } from "../parts/Notice.tsx";
import { HeadlineText, Lanes } from "../parts/Stage.tsx";
import { rate, short, time } from "../state/numbers.ts";
import { about, api } from "../state/server.ts";
import { Session } from "../state/session.ts";

export function DriveView() {
    const session = useMemo(() => Session.ofDrive(api), []);
    useEffect(() => () => session.close(), [session]);
    const connection = session.connection.value;
    return (
        <main id="content" tabIndex={-1} class="run drive">
            <div class="run-head">
                <h1>{session.title.value || "The served drive"}</h1>
                {about.value?.actions === true ? <Actions session={session} /> : <p class="note">Watched only: what this drive does is its hosts' affair.</p>}
            </div>
            {connection === "lost" && <Notice kind="waiting">The server does not answer. What is shown is the last picture; the page tries again by itself.</Notice>}
            {connection === "gone" && <Notice kind="waiting">This server serves no drive now. Start one with `warp serve --studio 127.0.0.1:8080`, or go back to the lab.</Notice>}
            {session.problem.value !== null && (
                <Notice kind="error" onClose={() => (session.problem.value = null)}>
                    {session.problem.value}
                </Notice>
            )}
            <HeadlineText session={session} />
            <Hosts session={session} />
            <Lanes session={session} />
            {session.lanes.value.length > 0 && (
                <div class="below">
                    <Curves session={session} />
                    <EventLog session={session} />
                </div>
            )}
        </main>
    );
}

function Hosts({ session }: { session: Session }) {
    const hosts = session.hosts.value?.hosts ?? [];
    return (
        <section class="hosts" aria-label="Hosts">
            <h2>Hosts</h2>
            <div class="scroll">
                <table class="numbers">
                    <thead>
                        <tr>
                            <th scope="col">host</th>
                            <th scope="col">namespace</th>
                            <th scope="col">IOPS</th>
                            <th scope="col">bandwidth</th>
                            <th scope="col">queue depth</th>
                            <th scope="col">p50</th>
                            <th scope="col">p99</th>
                            <th scope="col">p99.9</th>
                        </tr>
                    </thead>
                    <tbody>
                        {hosts.length === 0 && (
                            <tr class="quiet-row">
                                <th scope="row" colSpan={8}>
                                    Nobody is connected. <code>warp serve</code> printed the lines that attach a host.
                                </th>
                            </tr>
                        )}
                        {hosts.map((host) => (
                            <tr key={`${host.host} ${host.namespace}`}>
                                <th scope="row" class="long" title={host.host}>
                                    <span>{host.host}</span> <small>{host.transport}</small>
                                </th>
                                <td>{host.namespace ?? "–"}</td>
                                <td>{short(host.iops)}</td>
                                <td>{rate(host.bytes_per_second)}</td>
                                <td>{host.queue_depth.toFixed(1)}</td>
                                <td>{host.latency_ns === null ? "–" : time(host.latency_ns.p50)}</td>
                                <td>{host.latency_ns === null ? "–" : time(host.latency_ns.p99)}</td>
                                <td>{host.latency_ns === null ? "–" : time(host.latency_ns.p999)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}

/** What changes the drive; each asks once more before it does. */
function Actions({ session }: { session: Session }) {
    const armed = useSignal<string | null>(null);
    const act = async (action: string) => {
        if (armed.value !== action) {
            armed.value = action;
            setTimeout(() => {
                if (armed.value === action) armed.value = null;
            }, 4000);
            return;
        }
        armed.value = null;
        try {
            await api.act(action, {});
        } catch (error) {
            session.problem.value = error instanceof Error ? error.message : String(error);
        }
    };
    const button = (action: string, text: string) => (
        <button type="button" onClick={() => void act(action)} style={{ minWidth: "10em" }}>
            {armed.value === action ? "Press again to do it" : text}
        </button>
    );
    return (
        <div class="actions">
            {button("snapshot", "Save a snapshot")}
            {button("reset-statistics", "Reset statistics")}
        </div>
    );
}
