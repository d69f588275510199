// Curves of a session. They show write amplification of all lanes and of each handle, latency and
// bandwidth in virtual time, and wear.
import { useSignal } from "@preact/signals";
import type uPlot from "uplot";
import { usedHandles } from "../map/painter.ts";
import { ownerColours } from "../map/palette.ts";
import { Choice, LaneChoice } from "../parts/Choice.tsx";
import { laneLetter } from "../parts/LaneTag.tsx";
import { bytes, capacities, moment, percent, rate, short, time, waf } from "../state/numbers.ts";
import { cumulative, merge, pointsOfLane, pointsOfOwner, windowed, type Points, type Series } from "../state/series.ts";
import type { Session } from "../state/session.ts";
import { unwatchedSentence } from "../state/unwatched.ts";
import type { LaneState } from "../state/lane.ts";
import type { LatencyMessage } from "../wire/messages.ts";
import { Plot, type Line } from "./Plot.tsx";

/** Strokes distinguish lanes, because colours distinguish owners. */
export const STROKES: { colour: string; dash: number[]; width: number }[] = [
    { colour: "ink", dash: [], width: 2 },
    { colour: "ink", dash: [7, 4], width: 2 },
    { colour: "ink", dash: [2, 3], width: 2 },
    { colour: "muted", dash: [], width: 2 },
    { colour: "muted", dash: [7, 4], width: 2 },
    { colour: "muted", dash: [2, 3], width: 2 },
    { colour: "ink", dash: [10, 3, 2, 3], width: 1 },
    { colour: "muted", dash: [10, 3, 2, 3], width: 1 },
];

/** Description of the values of a curve, for a window as a share of the capacity. */
const WINDOWS: Record<string, string> = { "0.02": "the last 0.02 drive writes", "0.1": "the last 0.1 drive writes", "1": "the last full drive write", all: "so far" };

/** Title of the vertical axis. A lane's displayed number differs from the values of its curve. */
function wafOver(window: string): string {
    return window === "all" ? "WAF so far" : `WAF of ${WINDOWS[window] ?? window}`;
}

type Kind = "waf" | "handles" | "time" | "wear";

export function Curves({ session }: { session: Session }) {
    const kind = useSignal<Kind>("waf");
    const lane = useSignal(0);
    const windowShare = useSignal("0.1");
    session.told.value;
    const lanes = session.lanes.value;
    const state = lanes[Math.min(lane.value, lanes.length - 1)];
    if (state === undefined) return null;
    return (
        <section class="curves" data-tour="curves" aria-label="Curves">
            <div class="bar">
                <h2>Curves</h2>
                <Choice<Kind>
                    label="curves"
                    value={kind.value}
                    onChange={(next) => (kind.value = next)}
                    choices={[
                        ["waf", "WAF"],
                        ["handles", "by handle"],
                        ["time", "latency"],
                        ["wear", "wear"],
                    ]}
                />
                {(kind.value === "waf" || kind.value === "handles") && (
                    <label class="inline">
                        over
                        <select value={windowShare.value} onChange={(event) => (windowShare.value = event.currentTarget.value)}>
                            {Object.entries(WINDOWS).map(([share, name]) => (
                                <option value={share} key={share}>
                                    {share === "all" ? "the whole run" : name}
                                </option>
                            ))}
                        </select>
                    </label>
                )}
                {kind.value !== "waf" && <LaneChoice lanes={lanes} value={lane} />}
            </div>
            {kind.value === "waf" && <WafPlot session={session} window={windowShare.value} />}
            {kind.value === "handles" && <HandlesPlot session={session} state={state} window={windowShare.value} />}
            {kind.value === "time" && <TimeView state={state} isDrive={session.isDrive} />}
            {kind.value === "wear" && <WearView session={session} state={state} />}
        </section>
    );
}

function seriesOf(points: Points, state: LaneState, window: string): Series {
    const capacity = state.lane.capacity_bytes;
    return window === "all" ? cumulative(points, capacity) : windowed(points, capacity, Number(window) * capacity, state.gaps);
}

function emptyOf(session: Session): string {
    return session.isDrive ? "No host has written data yet." : "The run has written no data yet. Press play, or step by a few requests.";
}

export function WafPlot({ session, window, height }: { session: Session; window: string; height?: number }) {
    session.told.value;
    const lanes = session.lanes.value;
    const all = lanes.map((state) => seriesOf(pointsOfLane(state), state, window));
    const { x, ys } = merge(all);
    const lines: Line[] = lanes.map((state, index) => ({ label: `${lanes.length > 1 ? `${laneLetter(index)} ` : ""}${state.lane.name || state.lane.device}`, ...(STROKES[index % STROKES.length] as (typeof STROKES)[number]) }));
    const first = lanes[0];
    if (first === undefined) return null;
    const forks = session.order.value?.forks ?? [];
    const unwatched = first.lane.unwatched ?? [];
    const last = unwatched.at(-1);
    return (
        <figure>
            <Plot
                lines={lines}
                data={[x, ...ys] as uPlot.AlignedData}
                xLabel="drive writes"
                yLabel={wafOver(window)}
                least={1}
                value={waf}
                xValue={capacities}
                xEnd={session.endBytes / first.lane.capacity_bytes}
                marks={[
                    ...forks.map((fork) => ({ x: fork.at_host_bytes / first.lane.capacity_bytes, label: fork.name })),
                    ...unwatched.map((one) => ({ x: one.to_host_bytes / first.lane.capacity_bytes, label: `from ${moment(one.until_unix_ms, Date.now())}` })),
                ]}
                label={`Write amplification over drive writes, so far ${lanes.map((state) => `${state.lane.name} ${waf(state.waf)}`).join(", ")}`}
                {...(height === undefined ? {} : { height })}
            />
            {x.length === 0 && <figcaption class="empty">{emptyOf(session)}</figcaption>}
            {last !== undefined && <figcaption>{unwatchedSentence(last, first.lane.capacity_bytes, Date.now())}</figcaption>}
        </figure>
    );
}

function HandlesPlot({ session, state, window }: { session: Session; state: LaneState; window: string }) {
    session.told.value;
    const colours = ownerColours(state.lane.owners, usedHandles(state));
    const shown = state.lane.owners.map((owner, index) => ({ owner, index })).filter(({ index, owner }) => owner.isolation !== null && (state.owners[index]?.hostBytes ?? 0) > 0);
    const { x, ys } = merge(shown.map(({ index }) => seriesOf(pointsOfOwner(state, index), state, window)));
    const lines: Line[] = shown.map(({ owner, index }) => ({ label: owner.name, colour: colours[index] ?? "ink" }));
    return (
        <figure>
            <Plot lines={lines} data={[x, ...ys] as uPlot.AlignedData} xLabel="drive writes" yLabel={`own ${wafOver(window)}`} least={1} value={waf} xValue={capacities} label="Write amplification of each handle" />
            <figcaption class={shown.length === 0 ? "empty" : ""}>
                {shown.length === 0 ? emptyOf(session) : "The own WAF of a handle is (host writes + copies out of its units) / host writes. Copies out of the shared pool belong to no handle."}
            </figcaption>
        </figure>
    );
}

function TimeView({ state, isDrive }: { state: LaneState; isDrive: boolean }) {
    const latency = state.latency;
    if (isDrive) return <p class="empty">For a served drive, the table above shows the latencies of each host in the last second.</p>;
    if (!state.lane.timed) {
        return (
            <p class="empty">
                This lane runs without a clock, so it has no latency. On the start page, choose a device with timing ({"ssd_a"}, {"ssd_b"}, {"pm9d3a"}) and the clock “virtual time”.
            </p>
        );
    }
    if (latency === null) return <p class="empty">The latencies appear when the lane ends.</p>;
    const { series } = latency;
    return (
        <>
            <LatencyPlot latencies={latency.latencies ?? null} />
            {series !== undefined && series.seconds.length > 1 && (
                <Plot
                    lines={[
                        { label: "hosts", colour: "ink" },
                        ...(series.collection_bytes_per_second === undefined ? [] : [{ label: "garbage collection", colour: "#D55E00", dash: [5, 3] }]),
                    ]}
                    data={[series.seconds, series.host_bytes_per_second.map((value) => value / 1e6), ...(series.collection_bytes_per_second === undefined ? [] : [series.collection_bytes_per_second.map((value) => value / 1e6)])] as uPlot.AlignedData}
                    xLabel="seconds of virtual time"
                    yLabel="MB/s"
                    least={0}
                    height={200}
                    value={(value) => (value === null ? "–" : rate(value * 1e6))}
                    xValue={(value) => `${value.toFixed(2)} s`}
                    label="Bandwidth over virtual time"
                />
            )}
            {series?.waited_share?.some((share) => share > 0) === true && (
                <Plot
                    lines={[{ label: "waited for garbage collection", colour: "#D55E00" }]}
                    data={[series.seconds, series.waited_share.map((share) => share * 100)]}
                    xLabel="seconds of virtual time"
                    yLabel="% of requests"
                    least={0}
                    height={140}
                    value={(value) => (value === null ? "–" : percent(value / 100))}
                    xValue={(value) => `${value.toFixed(2)} s`}
                    label="Share of requests that waited for garbage collection over virtual time"
                />
            )}
            <div class="scroll">
                <table class="numbers">
                    <thead>
                        <tr>
                            <th scope="col">job</th>
                            <th scope="col">IOPS</th>
                            <th scope="col">bandwidth</th>
                            <th scope="col">mean</th>
                            <th scope="col">p50</th>
                            <th scope="col">p99</th>
                            <th scope="col">p99.9</th>
                            <th scope="col">p99.99</th>
                            <th scope="col">waited for GC</th>
                        </tr>
                    </thead>
                    <tbody>
                        {latency.jobs.map((job) => (
                            <tr key={`${job.name} ${job.direction}`}>
                                <th scope="row">
                                    {job.name}, {job.direction}
                                </th>
                                <td>{short(job.iops)}</td>
                                <td>{rate(job.bytes_per_second)}</td>
                                <td>{time(job.mean_ns)}</td>
                                <td>{time(job.p50_ns)}</td>
                                <td>{time(job.p99_ns)}</td>
                                <td>{time(job.p999_ns)}</td>
                                <td>{time(job.p9999_ns)}</td>
                                <td>{percent(job.waited_share)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </>
    );
}

const PERCENTILES = [
    ["p50", "p50_ns", []],
    ["p99", "p99_ns", [7, 4]],
    ["p99.9", "p999_ns", [2, 3]],
] as const;

/**
 * Percentiles of each direction over virtual time. Writes are dark and reads pale, strokes
 * distinguish percentiles.
 */
function LatencyPlot({ latencies }: { latencies: NonNullable<LatencyMessage["latencies"]> | null }) {
    if (latencies === null || latencies.seconds.length < 2) return null;
    const rows = latencies.directions.flatMap((one) =>
        PERCENTILES.map(([name, key, dash]) => ({
            line: { label: `${one.direction} ${name}`, colour: one.direction === "read" ? "muted" : "ink", dash: [...dash], width: 2 },
            values: one[key].map((ns) => (ns === null ? null : Math.max(ns, 1) / 1e3)),
        })),
    );
    return (
        <Plot
            log
            lines={rows.map(({ line }) => line)}
            data={[latencies.seconds, ...rows.map(({ values }) => values)]}
            xLabel="seconds of virtual time"
            yLabel="latency, µs"
            least={1}
            value={(value) => (value === null ? "–" : time(value * 1e3))}
            xValue={(value) => `${value.toFixed(2)} s`}
            label="Percentiles of latency over virtual time"
        />
    );
}

function WearView({ session, state }: { session: Session; state: LaneState }) {
    const hosts = session.hosts.value;
    const wear = state.wear ?? hosts?.wear ?? null;
    const erases = state.result?.block_erases ?? wear;
    const reclaimed = state.owners.reduce((sum, owner) => sum + owner.reclaimed, 0);
    return (
        <>
            {wear !== null && wear.max > wear.min && (
                <Plot
                    lines={[{ label: "blocks", colour: "ink", fill: "#8886" }]}
                    bars
                    data={[wear.blocks.map((_, bar) => wear.min + bar * wear.step), wear.blocks] as uPlot.AlignedData}
                    xLabel="erases of a block"
                    yLabel="blocks"
                    least={0}
                    height={200}
                    value={(value) => (value === null ? "–" : short(value))}
                    xValue={(erases) => (wear.step === 1 ? String(erases) : `${erases} to ${erases + wear.step - 1}`)}
                    label={`Blocks by number of erases, from ${wear.min} to ${wear.max}`}
                />
            )}
            <dl class="facts">
                <div>
                    <dt>reclaim units erased</dt>
                    <dd>{short(reclaimed)}</dd>
                </div>
                <div>
                    <dt>average erases of a unit</dt>
                    <dd>{(reclaimed / Math.max(1, state.lane.superblocks)).toFixed(2)}</dd>
                </div>
                <div>
                    <dt>flash written</dt>
                    <dd>{bytes(state.mediaBytes)}</dd>
                </div>
                {erases !== null && (
                    <div>
                        <dt>erases of a block (min, avg, max)</dt>
                        <dd>
                            {erases.min}, {erases.avg.toFixed(1)}, {erases.max}
                        </dd>
                    </div>
                )}
            </dl>
        </>
    );
}
