// Panel of a lane with description, write amplification, map, free units with the GC watermarks,
// handles.
import type { Signal } from "@preact/signals";
import type { Grouping } from "../map/layout.ts";
import { usedHandles } from "../map/painter.ts";
import { ownerColours } from "../map/palette.ts";
import { UnitMap } from "../map/UnitMap.tsx";
import type { LaneState } from "../state/lane.ts";
import { bytes, capacities, counted, grouped, percent, short, waf } from "../state/numbers.ts";
import type { Session } from "../state/session.ts";
import { Notice } from "./Notice.tsx";
import { Prose } from "./Prose.tsx";
import { LaneTag } from "./LaneTag.tsx";

const PHASE_WORDS: Record<string, string> = { waiting: "waiting", filling: "filling before the run", running: "running", paused: "paused", ended: "ended", failed: "failed" };

export function LanePanel({ session, state, index, grouping, mostHeight }: { session: Session; state: LaneState; index: number; grouping: Signal<Grouping>; mostHeight: number }) {
    session.told.value;
    const { lane } = state;
    const lanes = session.lanes.value;
    const isAlone = lanes.length === 1;
    // The order lists forks after the lanes, in the order of their creation.
    const fork = lane.of === null ? undefined : session.order.value?.forks[lanes.slice(0, index).filter((one) => one.lane.of !== null).length];
    return (
        <article class="lane" aria-label={`Lane ${lane.name}`}>
            <header class="lane-head">
                <div class="lane-name">
                    {!isAlone && <LaneTag index={index} />}
                    <h2 title={lane.name}>{lane.name || lane.device}</h2>
                    {lane.of !== null && (
                        <button type="button" class="quiet" onClick={() => session.drop(index)} aria-label={`Drop lane ${lane.name}`}>
                            drop
                        </button>
                    )}
                </div>
                <p class="lane-waf" aria-label={`write amplification so far ${waf(state.waf)}`}>
                    <span>WAF so far</span> <b>{waf(state.waf)}</b>
                </p>
                <p class="lane-sub">
                    {lane.device}
                    {lane.scale !== "" && lane.scale !== "1/1" && ` at ${lane.scale}`}, {bytes(lane.capacity_bytes)}
                    {lane.workload !== "" && <>, {lane.workload}</>}
                    {fork !== undefined && `, forked at ${capacities(fork.at_host_bytes / lane.capacity_bytes)}`}
                    {lane.forked === "start" && ", run from the start"}
                </p>
                <p class="lane-phase" data-phase={state.phase}>
                    {PHASE_WORDS[state.phase]}
                </p>
            </header>
            {typeof lane.error === "string" && <Notice kind="error">{lane.error}</Notice>}
            <UnitMap session={session} state={state} grouping={grouping} mostHeight={mostHeight} hasHint={index === 0} />
            <div class="lane-side">
            <FreeUnits state={state} />
            <Owners state={state} />
            <dl class="facts">
                <Fact name="host" value={`${capacities(state.capacities)}\u00a0×`} title={bytes(state.hostBytes)} />
                <Fact name="flash" value={`${capacities(state.mediaBytes / lane.capacity_bytes)}\u00a0×`} title={bytes(state.mediaBytes)} />
                <Fact name="collections" value={short(state.collections)} />
                <Fact name="requests" value={short(state.requests)} />
                <Fact name="pages/s" value={state.pagesPerSecond > 0 ? short(state.pagesPerSecond) : "–"} />
            </dl>
            <Warnings state={state} />
            </div>
        </article>
    );
}

function Fact({ name, value, title }: { name: string; value: string; title?: string }) {
    return (
        <div>
            <dt>{name}</dt>
            <dd title={title}>{value}</dd>
        </div>
    );
}

/** Free reclaim units on a scale with the GC watermarks. */
function FreeUnits({ state }: { state: LaneState }) {
    const { marks, superblocks } = state.lane;
    // The scale ends at four times the background watermark, not at the whole drive.
    const most = Math.max(8, Math.min(superblocks, Math.max(marks.background_free_units, marks.foreground_free_units) * 4));
    const place = (units: number) => `${Math.min(100, (units / most) * 100)}%`;
    const level = state.freeUnits <= marks.foreground_free_units ? "foreground" : state.freeUnits <= marks.background_free_units ? "background" : "calm";
    const words = { calm: "no collection", background: "background collection", foreground: "foreground collection" }[level];
    return (
        <div class="free-units" data-tour="free" data-level={level}>
            <p>
                <b>{grouped(state.freeUnits)}</b> free {state.freeUnits === 1 ? "unit" : "units"}, {words}
            </p>
            <div class="gauge" role="img" aria-label={`${counted(state.freeUnits, "free unit")}, background collection at ${marks.background_free_units}, foreground at ${marks.foreground_free_units}`}>
                <i class="level" style={{ width: place(state.freeUnits) }} />
                <i class="mark" style={{ left: place(marks.foreground_free_units) }} />
                <i class="mark" style={{ left: place(marks.background_free_units) }} />
            </div>
            <p class="marks" aria-hidden="true">
                watermarks: foreground {grouped(marks.foreground_free_units)}, background {grouped(marks.background_free_units)}
            </p>
        </div>
    );
}

function Owners({ state }: { state: LaneState }) {
    const { lane } = state;
    const colours = ownerColours(lane.owners, usedHandles(state));
    const shown = lane.owners.map((owner, index) => ({ owner, index })).filter(({ index }) => {
        const totals = state.owners[index];
        return totals !== undefined && (totals.hostBytes > 0 || totals.units > 0 || totals.received > 0);
    });
    return (
        <div class="scroll" data-tour="handles">
            <table class="numbers">
                <thead>
                    <tr>
                        <th scope="col">handle</th>
                        <th scope="col">units</th>
                        <th scope="col">valid</th>
                        <th scope="col" title="Bytes that the host wrote through this handle, in drive writes">
                            host ×
                        </th>
                        <th scope="col" title="Bytes copied out of its units, in drive writes">
                            copied ×
                        </th>
                        <th scope="col" title="Write amplification of all writes through this handle so far">
                            own WAF
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {shown.length === 0 && (
                        <tr class="quiet-row">
                            <th scope="row">none yet</th>
                            <td>–</td>
                            <td>–</td>
                            <td>–</td>
                            <td>–</td>
                            <td>–</td>
                        </tr>
                    )}
                    {shown.map(({ owner, index }) => {
                        const totals = state.owners[index];
                        if (totals === undefined) return null;
                        return (
                            <tr key={index}>
                                <th scope="row">
                                    <i class="swatch" style={{ background: colours[index] }} /> {owner.name}
                                    {owner.isolation !== null && <small>{owner.isolation}</small>}
                                </th>
                                <td>{grouped(totals.units)}</td>
                                <td>{totals.units > 0 ? percent(totals.validPages / (totals.units * state.unitPages)) : "–"}</td>
                                <td title={bytes(totals.hostBytes)}>{owner.isolation === null ? "–" : capacities(totals.hostBytes / lane.capacity_bytes)}</td>
                                <td title={`${grouped(totals.copiedOut)} pages`}>{capacities((totals.copiedOut * lane.page_bytes) / lane.capacity_bytes)}</td>
                                <td>{waf(state.ownerWaf(index))}</td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </div>
    );
}

function Warnings({ state }: { state: LaneState }) {
    const warnings = state.result?.warnings ?? [];
    // These numbers appear at the end of a run.
    if (warnings.length === 0) return <div class="warnings" />;
    return (
        <ul class="warnings">
            {warnings.map((warning) => (
                <li key={warning}>
                    <Prose>{warning}</Prose>
                </li>
            ))}
        </ul>
    );
}
