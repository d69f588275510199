// View of a served drive with the current activity of its hosts, units, handles, events, and
// actions.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Curves } from "../curves/Curves.tsx";
import { EventLog } from "../parts/EventLog.tsx";
import { FaultsDialog, FaultsTable } from "../parts/FaultsDialog.tsx";
import { Notice } from "../parts/Notice.tsx";
import { HeadlineText, Lanes } from "../parts/Stage.tsx";
import { TwoPress } from "../parts/TwoPress.tsx";
import { resetSentence, snapshotSentence } from "../state/actions.ts";
import { moment, rate, short, time } from "../state/numbers.ts";
import { about, api } from "../state/server.ts";
import { Session } from "../state/session.ts";

export function DriveView() {
    const session = useMemo(() => Session.ofDrive(api), []);
    useEffect(() => () => session.close(), [session]);
    const connection = session.connection.value;
    const said = useSignal<string | null>(null);
    const since = session.lanes.value[0]?.lane.since_unix_ms ?? null;
    return (
        <main id="content" tabIndex={-1} class="run drive">
            <div class="run-head">
                <h1>{session.title.value || "The served drive"}</h1>
                {about.value?.actions === true ? <Actions session={session} said={said} /> : <p class="note">This page only monitors the drive. To allow actions, use <code>warp serve --studio-token FILE</code>.</p>}
            </div>
            {connection === "lost" && <Notice kind="waiting">The server does not answer. The page shows the last state and reconnects automatically.</Notice>}
            {connection === "gone" && <Notice kind="waiting">This server serves no drive. Start one with `warp serve --studio 127.0.0.1:8080`, or go back to the start page.</Notice>}
            {session.problem.value !== null && (
                <Notice kind="error" onClose={() => (session.problem.value = null)}>
                    {session.problem.value}
                </Notice>
            )}
            {said.value !== null && (
                <Notice kind="note" onClose={() => (said.value = null)}>
                    {said.value}
                </Notice>
            )}
            <HeadlineText session={session} />
            <p class="note since">{since === null ? "The numbers start with the creation of the drive." : `The numbers start at ${moment(since, Date.now())}.`}</p>
            <Hosts session={session} />
            <Faults session={session} />
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
            <div class="scroll" role="group" aria-label="Activity of hosts" tabIndex={0}>
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
                                    No host is connected. The output of <code>warp serve</code> has the commands that attach a host.
                                </th>
                            </tr>
                        )}
                        {hosts.map((host) => (
                            <tr key={`${host.controller} ${host.host} ${host.namespace}`}>
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

/** Injected faults. */
function Faults({ session }: { session: Session }) {
    const report = session.faults.value;
    if (report === null) return null;
    return (
        <section class="hosts" aria-label="Faults">
            <h2>Faults</h2>
            <FaultsTable report={report} />
        </section>
    );
}

/** Actions on the drive, each with confirmation. */
function Actions({ session, said }: { session: Session; said: Signal<string | null> }) {
    const isBusy = useSignal(false);
    const isPlanning = useSignal(false);
    const act = async (action: () => Promise<string>) => {
        isBusy.value = true;
        said.value = null;
        session.problem.value = null;
        try {
            said.value = await action();
        } catch (error) {
            session.problem.value = error instanceof Error ? error.message : String(error);
        }
        isBusy.value = false;
    };
    const snapshot = async () => snapshotSentence(await api.snapshot(), Date.now());
    const reset = async () => resetSentence(await api.resetStatistics(), Date.now());
    return (
        <div class="actions">
            <TwoPress text="Save a snapshot" again="Press again to save" isBusy={isBusy.value} onAct={() => void act(snapshot)} />
            <TwoPress text="Reset statistics" again="Press again to reset" isBusy={isBusy.value} onAct={() => void act(reset)} />
            <button type="button" onClick={() => (isPlanning.value = true)}>
                Faults …
            </button>
            <FaultsDialog session={session} open={isPlanning} />
        </div>
    );
}
