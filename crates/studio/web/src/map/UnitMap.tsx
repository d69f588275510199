// Map of a lane's reclaim units, with a canvas of tiles, a canvas above it for movements, headings,
// and a line about the selected unit.
import { effect, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { CLOSED, FREE, NO_OWNER, OPEN_FOR_HOST } from "../wire/frame.ts";
import type { LaneState } from "../state/lane.ts";
import { counted, grouped, percent } from "../state/numbers.ts";
import type { Session } from "../state/session.ts";
import { isDark, mayMove } from "../state/theme.ts";
import type { Grouping, Region } from "./layout.ts";
import { Painter, usedHandles } from "./painter.ts";
import { DARK, LIGHT, ownerColours } from "./palette.ts";

/** Minimum time between two pictures. With the display's 60 Hz this gives 30 pictures a second. */
const PICTURE_MS = 26;

interface Props {
    session: Session;
    state: LaneState;
    grouping: Signal<Grouping>;
    mostHeight?: number;
    /** True to show a hint while no unit is selected. */
    hasHint?: boolean;
}

export function UnitMap({ session, state, grouping, mostHeight = 380, hasHint = true }: Props) {
    const frame = useRef<HTMLDivElement>(null);
    const tiles = useRef<HTMLCanvasElement>(null);
    const above = useRef<HTMLCanvasElement>(null);
    const painter = useRef<Painter | null>(null);
    const [height, setHeight] = useState(mostHeight);
    const [regions, setRegions] = useState<Region[]>([]);
    const [unit, setUnit] = useState<number | null>(null);
    const redraw = useRef<() => void>(() => {});
    const group = grouping.value;

    useLayoutEffect(() => {
        const element = frame.current;
        if (element === null || tiles.current === null || above.current === null) return;
        const made = new Painter(tiles.current, above.current, state, { grouping: grouping.peek(), ground: isDark.peek() ? DARK : LIGHT, moves: mayMove.peek() });
        painter.current = made;
        let waiting = 0;
        let isArranged = false;
        const scale = () => Math.min(2, globalThis.devicePixelRatio || 1);
        const arrange = () => {
            const width = element.clientWidth;
            if (width === 0) return;
            setHeight(made.arrange(width, mostHeight, scale(), { grouping: grouping.peek(), ground: isDark.peek() ? DARK : LIGHT, moves: mayMove.peek() }));
            setRegions([...(made.layout?.regions ?? [])]);
            isArranged = true;
        };
        let drawnAt = 0;
        const draw = (now: number) => {
            waiting = 0;
            drawnAt = now;
            if (!isArranged || made.isOutdated) arrange();
            const before = made.layout?.regions;
            if (made.picture(now)) ask();
            if (made.isOutdated) arrange();
            if (made.layout?.regions !== before) setRegions([...(made.layout?.regions ?? [])]);
        };
        // 30 pictures a second are enough and leave processor time to the engine. The pause has its
        // own timer, because a browser composes the page for each requested animation frame, even
        // without a change.
        let pause: ReturnType<typeof setTimeout> | undefined;
        const ask = () => {
            if (waiting !== 0 || pause !== undefined) return;
            const left = drawnAt + PICTURE_MS - performance.now();
            if (left <= 0) {
                waiting = requestAnimationFrame(draw);
                return;
            }
            pause = setTimeout(() => {
                pause = undefined;
                if (waiting === 0) waiting = requestAnimationFrame(draw);
            }, left);
        };
        redraw.current = ask;
        const stopDrawing = effect(() => {
            session.drawn.value;
            ask();
        });
        const stopArranging = effect(() => {
            grouping.value;
            isDark.value;
            mayMove.value;
            isArranged = false;
            ask();
        });
        let known = element.clientWidth;
        const observer = new ResizeObserver(() => {
            if (element.clientWidth === known) return;
            known = element.clientWidth;
            isArranged = false;
            ask();
        });
        observer.observe(element);
        return () => {
            observer.disconnect();
            stopDrawing();
            stopArranging();
            cancelAnimationFrame(waiting);
            clearTimeout(pause);
            made.end();
            painter.current = null;
        };
    }, [session, state, mostHeight]);

    useEffect(() => {
        painter.current?.setFocus(unit);
        redraw.current();
    }, [unit]);

    const pick = (event: PointerEvent) => {
        const box = above.current?.getBoundingClientRect();
        const layout = painter.current?.layout;
        if (box === undefined || layout === undefined || layout === null || above.current === null) return;
        const scale = above.current.width / box.width;
        setUnit(layout.unitAt((event.clientX - box.left) * scale, (event.clientY - box.top) * scale));
    };
    const keys = (event: KeyboardEvent) => {
        const layout = painter.current?.layout;
        if (layout === undefined || layout === null) return;
        const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
        const step = steps[event.key];
        if (step !== undefined) {
            event.preventDefault();
            setUnit(unit === null ? layout.first() : layout.beside(unit, ...step));
        } else if (event.key === "Escape") {
            setUnit(null);
        }
    };

    return (
        <div class="unit-map" data-tour="map">
            <div class="unit-map-scroll">
                <div
                    class="unit-map-frame"
                    ref={frame}
                    style={{ height: `${height}px` }}
                    role="application"
                    tabIndex={0}
                    aria-roledescription="map of reclaim units"
                    aria-label={`${grouped(state.lane.units)} reclaim units of ${state.lane.name}. Use the arrow keys to move between units.`}
                    onPointerMove={pick}
                    onPointerDown={pick}
                    onPointerLeave={(event) => event.pointerType === "mouse" && setUnit(null)}
                    onKeyDown={keys}
                >
                    <canvas ref={tiles} class="tiles" aria-hidden="true" />
                    <canvas ref={above} class="above" aria-hidden="true" />
                    {group !== "physical" && <Headings session={session} state={state} regions={regions} grouping={group} scale={above.current?.width ? above.current.width / (frame.current?.clientWidth || 1) : 1} />}
                </div>
            </div>
            <UnitLine session={session} state={state} unit={unit} hasHint={hasHint} />
        </div>
    );
}

function Headings({ session, state, regions, grouping, scale }: { session: Session; state: LaneState; regions: Region[]; grouping: Grouping; scale: number }) {
    session.told.value;
    const colours = ownerColours(state.lane.owners, usedHandles(state));
    return (
        <>
            {regions.map((region) => {
                // Regions grow many times a second, so their headings move without a new layout.
                const style = { transform: `translateY(${region.top / scale}px)` };
                if (grouping === "group") {
                    return (
                        <div class="region" style={style} key={region.key}>
                            <b>reclaim group {region.key}</b>
                        </div>
                    );
                }
                if (region.key === NO_OWNER) {
                    return (
                        <div class="region" style={style} key={region.key}>
                            <i class="swatch free" />
                            <b>free</b>
                            <span>{counted(state.freeUnits, "unit")}</span>
                        </div>
                    );
                }
                const owner = state.lane.owners[region.key];
                const totals = state.owners[region.key];
                // Streams have names by owner. A list of another length does not match the owners.
                const placement = state.lane.placements.length === state.lane.owners.length ? state.lane.placements[region.key] : undefined;
                return (
                    <div class="region" style={style} key={region.key}>
                        <i class="swatch" style={{ background: colours[region.key] }} />
                        <b>{owner?.name}</b>
                        {placement !== undefined && placement !== "" && <em>{placement}</em>}
                        <span>
                            {counted(totals?.units ?? 0, "unit")}
                            {totals !== undefined && totals.units > 0 && `, ${percent(totals.validPages / (totals.units * state.unitPages))} valid`}
                        </span>
                    </div>
                );
            })}
        </>
    );
}

const STATES: Record<number, string> = { [FREE]: "free", [OPEN_FOR_HOST]: "open for the host", 2: "open for collection", [CLOSED]: "closed" };

/** All attributes of a unit. */
export function describeUnit(state: LaneState, slice: number): string {
    const unit = state.unitOf(slice);
    const condition = state.state[unit] ?? FREE;
    const where = state.lane.groups > 1 ? `, reclaim group ${state.group[unit]}` : "";
    if (condition === FREE) return `free${where}`;
    const pages = state.pagesOf(unit);
    const owner = state.lane.owners[state.owner[unit] ?? NO_OWNER];
    const isolation = owner?.isolation === null || owner === undefined ? "" : ` (${owner.isolation})`;
    const valid = state.valid[unit] ?? 0;
    const written = state.written[unit] ?? 0;
    const room = written < pages ? `, room for ${grouped(pages - written)}` : "";
    return `${owner?.name ?? "no owner"}${isolation}, ${STATES[condition] ?? "unknown"}${where}, ${percent(valid / pages)} valid (${grouped(valid)} of ${grouped(pages)} pages), ${grouped(written)} written${room}`;
}

const HINT = globalThis.matchMedia?.("(hover: none)").matches === true ? "Touch a unit to see its contents." : "Point at a unit to see its contents, or use the arrow keys.";

function UnitLine({ session, state, unit, hasHint }: { session: Session; state: LaneState; unit: number | null; hasHint: boolean }) {
    session.told.value;
    return (
        <p class="unit-line" aria-live="polite">
            {unit === null ? (
                hasHint && HINT
            ) : (
                <>
                    <b>unit {state.unitOf(unit)}</b> {describeUnit(state, unit)}
                </>
            )}
        </p>
    );
}

/** Legend of the tiles, shared by all maps. */
export function Legend() {
    return (
        <p class="legend">
            <span>
                <i class="swatch key" /> valid
            </span>
            <span>
                <i class="swatch key dead" /> invalid
            </span>
            <span>
                <i class="swatch key open" /> open for the host
            </span>
            <span>
                <i class="swatch key collecting" /> open for collection
            </span>
        </p>
    );
}
