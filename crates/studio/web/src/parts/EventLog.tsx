// Event log of a lane, newest first, with filters by kind and owner, and the events that a host can
// read.
import { useSignal } from "@preact/signals";
import { LaneChoice } from "./Choice.tsx";
import { usedHandles } from "../map/painter.ts";
import { ownerColours } from "../map/palette.ts";
import { hostEvent, ownerName, sentence } from "../state/events.ts";
import type { LoggedEvent } from "../state/lane.ts";
import { capacities, grouped } from "../state/numbers.ts";
import type { Session } from "../state/session.ts";
import { Prose } from "./Prose.tsx";

const SHOWN = 120;

type Filter = "all" | "host" | "reclaim" | "open" | "close" | "redirect";

export function EventLog({ session }: { session: Session }) {
    const lane = useSignal(0);
    const filter = useSignal<Filter>("host");
    const owner = useSignal("all");
    session.told.value;
    const lanes = session.lanes.value;
    const state = lanes[Math.min(lane.value, lanes.length - 1)];
    if (state === undefined) return null;
    const colours = ownerColours(state.lane.owners, usedHandles(state));
    const shown: LoggedEvent[] = [];
    for (let index = state.events.length - 1; index >= 0 && shown.length < SHOWN; index -= 1) {
        const event = state.events[index] as LoggedEvent;
        if (owner.value !== "all" && event.owner !== Number(owner.value)) continue;
        if (filter.value === "host" ? hostEvent(event, state.lane) === null : filter.value !== "all" && event.kind !== filter.value) continue;
        shown.push(event);
    }
    return (
        <section class="events" data-tour="events" aria-label="Events">
            <div class="bar">
                <h2>Events</h2>
                <label class="inline">
                    <span class="hidden">Kind</span>
                    <select value={filter.value} onChange={(event) => (filter.value = event.currentTarget.value as Filter)}>
                        <option value="host">host events</option>
                        <option value="all">all events</option>
                        <option value="reclaim">reclaims</option>
                        <option value="open">opened units</option>
                        <option value="close">closed units</option>
                        <option value="redirect">redirected writes</option>
                    </select>
                </label>
                <label class="inline">
                    <span class="hidden">Handle</span>
                    <select value={owner.value} onChange={(event) => (owner.value = event.currentTarget.value)}>
                        <option value="all">all handles</option>
                        {state.lane.owners.map((one, index) => (
                            <option value={index} key={index}>
                                {one.name}
                            </option>
                        ))}
                    </select>
                </label>
                <LaneChoice lanes={lanes} value={lane} />
            </div>
            <ol class="log" tabIndex={0} aria-label="Events, newest first">
                {shown.length === 0 && <li class="empty">{state.events.length === 0 ? "No events yet. The first write opens units. The drive reclaims units when free units run low." : "No events of this kind yet."}</li>}
                {shown.map((event) => {
                    const seen = hostEvent(event, state.lane);
                    return (
                        <li key={event.number}>
                            <span class="when">{capacities(event.hostBytes / state.lane.capacity_bytes)}</span>
                            <i class="swatch" style={{ background: colours[event.owner] ?? "transparent" }} title={ownerName(state.lane, event.owner)} />
                            <span class="what">
                                {seen !== null && (
                                    <b>
                                        {seen.name} <small>{seen.type}</small>
                                    </b>
                                )}
                                {sentence(event, state.lane)}
                            </span>
                        </li>
                    );
                })}
            </ol>
            {state.eventsLeftOut > 0 && <p class="note">{grouped(state.eventsLeftOut)} events are missing here, because they came too fast for the page.{session.id !== "drive" && <Prose>{" `warp run --events` writes all events."}</Prose>}</p>}
        </section>
    );
}
