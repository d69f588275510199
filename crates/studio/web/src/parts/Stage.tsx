// Main view of a session with headline, lanes and curves, shared by the page and notebooks.
import { useSignal } from "@preact/signals";
import type { Grouping } from "../map/layout.ts";
import { headline } from "../state/headline.ts";
import type { Session } from "../state/session.ts";
import { Legend } from "../map/UnitMap.tsx";
import { Choice } from "./Choice.tsx";
import { LanePanel } from "./LanePanel.tsx";

export function HeadlineText({ session }: { session: Session }) {
    session.told.value;
    const said = headline(session.lanes.value, session.order.value?.forks ?? [], session.isDrive);
    return (
        <div class="headline" data-tour="headline">
            <p class="figure" data-empty={said === null || said.figure === "–" ? "" : undefined}>
                {said?.figure ?? "–"}
            </p>
            <p class="sentence">{said?.sentence ?? "Waiting for the first state of the drive."}</p>
        </div>
    );
}

/** Height of header, caption and time controls in a small window, with the line below a map. */
const TOUR_FRAME = 430;

export function Lanes({ session, isTour = false }: { session: Session; isTour?: boolean }) {
    const grouping = useSignal<Grouping>("handle");
    const lanes = session.lanes.value;
    if (lanes.length === 0) {
        return (
            <div class="lanes skeleton" aria-busy="true">
                <article class="lane">
                    <div class="unit-map-frame" style={{ height: "380px" }} />
                </article>
            </div>
        );
    }
    const hasGroups = lanes.some((state) => state.lane.groups > 1);
    // A drive with very many units gets a taller map if it is the only lane.
    const isLarge = lanes.some((state) => state.lane.units > 16_384);
    const wanted = lanes.length > 1 ? 400 : isLarge ? 620 : 430;
    // In the tour, the whole map fits above the caption.
    const mostHeight = isTour ? Math.min(wanted, Math.max(200, globalThis.innerHeight - TOUR_FRAME)) : wanted;
    return (
        <section aria-label="Drive">
            <div class="bar">
                <h2>Reclaim units</h2>
                <Choice<Grouping>
                    label="order of units"
                    value={grouping.value}
                    onChange={(next) => (grouping.value = next)}
                    choices={[["handle", "by handle"], ...(hasGroups ? ([["group", "by reclaim group"]] as [Grouping, string][]) : []), ["physical", "physical order"]]}
                />
                <Legend />
            </div>
            <div class="lanes" data-lanes={lanes.length === 1 && isLarge ? "large" : lanes.length}>
                {lanes.map((state, index) => (
                    <LanePanel session={session} state={state} index={index} grouping={grouping} mostHeight={mostHeight} key={`${index} ${state.lane.name}`} />
                ))}
            </div>
        </section>
    );
}
