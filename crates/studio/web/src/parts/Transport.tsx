// Controls to play, step and set the speed, and a slider over the whole run.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { bytes, capacities } from "../state/numbers.ts";
import type { Session } from "../state/session.ts";

/** Share of the capacity that the host writes per second. null is unlimited. */
const SPEEDS: [string, number | null][] = [
    ["0.001 ×/s", 0.001],
    ["0.01 ×/s", 0.01],
    ["0.05 ×/s", 0.05],
    ["0.2 ×/s", 0.2],
    ["1 ×/s", 1],
    ["full speed", null],
];
const STEPS = [1, 100, 10_000];
const SLIDER = 10_000;
/** Minimum interval between seeks while the slider is dragged. */
const SEEK_EVERY_MS = 120;

function isOverNow(session: Session): boolean {
    const lanes = session.lanes.value;
    return lanes.length > 0 && lanes.every((state) => state.phase === "ended" || state.phase === "failed");
}

/** Play restarts a run that has ended. */
function playOrPause(session: Session): void {
    if (isOverNow(session)) {
        session.seek(0);
        session.play();
    } else if (session.running.value) session.pause();
    else session.play();
}

export function Transport({ session }: { session: Session }) {
    session.told.value;
    const lanes = session.lanes.value;
    const first = lanes[0];
    const dragged = useSignal<number | null>(null);
    const sentAt = useRef(0);
    const bar = useRef<HTMLDivElement>(null);
    useEffect(() => {
        // Keyboard shortcuts of this page. In a notebook, only keys pressed within the widget
        // count.
        const root = bar.current?.getRootNode() ?? document;
        const listened = (event: Event) => keys(event as KeyboardEvent);
        const keys = (event: KeyboardEvent) => {
            const target = event.target as HTMLElement;
            if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, button, dialog, [contenteditable]") !== null) return;
            if (event.key === " ") {
                event.preventDefault();
                playOrPause(session);
            } else if (event.key === ".") {
                session.step(1);
            }
        };
        root.addEventListener("keydown", listened);
        return () => root.removeEventListener("keydown", listened);
    }, [session, first === undefined]);
    if (first === undefined) return null;

    const capacity = first.lane.capacity_bytes;
    const end = session.endBytes;
    const now = dragged.value ?? session.seeking.value ?? session.hostBytes;
    const isOver = isOverNow(session);
    const running = session.running.value && !isOver;
    const drag = (value: number, isLast: boolean) => {
        const target = (value / SLIDER) * end;
        dragged.value = isLast ? null : target;
        const time = performance.now();
        if (isLast || time - sentAt.current > SEEK_EVERY_MS) {
            sentAt.current = time;
            session.seek(target);
        }
    };
    const speed = session.speed.value;
    const isPreset = SPEEDS.some(([, share]) => (share === null ? speed === null : speed !== null && Math.abs(share * capacity - speed) < capacity * 1e-6));
    return (
        <div class="transport" ref={bar} data-tour="time" role="group" aria-label="Time">
            <button type="button" class="play" onClick={() => playOrPause(session)} title={isOver ? "Play from the beginning (Space)" : "Space"}>
                <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                    {running ? <path d="M3 2h4v12H3zM9 2h4v12H9z" /> : <path d="M3 1.5v13l11-6.5z" />}
                </svg>
                <span class="hidden">{running ? "Pause" : isOver ? "Play from the beginning" : "Play"}</span>
            </button>
            <div class="steps" role="group" aria-label="Step">
                {STEPS.map((requests) => (
                    <button type="button" key={requests} onClick={() => session.step(requests)} disabled={isOver} aria-label={`+${requests >= 1000 ? `${requests / 1000}k` : requests}: step by ${requests === 1 ? "a request" : `${requests} requests`}`} title={requests === 1 ? "Step by a request (.)" : `Step by ${requests} requests`}>
                        +{requests >= 1000 ? `${requests / 1000}k` : requests}
                    </button>
                ))}
            </div>
            <button type="button" class="to-collection" onClick={() => session.firstCollection()} title="Go to the first garbage collection of any lane">
                <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                    <path d="M2 2h2v12H2zM6 3.5h4v4H6zM11 3.5h3v4h-3zM6 8.5h4v4H6z" />
                </svg>
                <span>First collection</span>
            </button>
            <div class="slider">
                <input
                    type="range"
                    min={0}
                    max={SLIDER}
                    step={1}
                    value={end === 0 ? 0 : Math.round((now / end) * SLIDER)}
                    aria-label="Position in the run"
                    aria-valuetext={`${capacities(now / capacity)} of ${capacities(end / capacity)} drive writes`}
                    onInput={(event) => drag(Number(event.currentTarget.value), false)}
                    onChange={(event) => drag(Number(event.currentTarget.value), true)}
                    style={{ "--at": `${end === 0 ? 0 : Math.min(100, (now / end) * 100)}%` }}
                />
                {(session.order.value?.forks ?? []).map((fork, index) => (
                    <i class="fork-mark" key={index} style={{ left: `${Math.min(100, (fork.at_host_bytes / end) * 100)}%` }} title={`fork: ${fork.name}`} />
                ))}
            </div>
            <output class="position" title={bytes(now)}>
                <b>{capacities(now / capacity)}</b> of {capacities(end / capacity)} <span>drive writes</span>
            </output>
            <label class="speed">
                <span class="hidden">Speed</span>
                <select
                    value={isPreset ? String(SPEEDS.findIndex(([, share]) => (share === null ? speed === null : speed !== null && Math.abs(share * capacity - speed) < capacity * 1e-6))) : "given"}
                    onChange={(event) => {
                        const share = SPEEDS[Number(event.currentTarget.value)]?.[1];
                        if (share !== undefined) session.setSpeed(share === null ? null : share * capacity);
                    }}
                >
                    {SPEEDS.map(([text], index) => (
                        <option value={index} key={text}>
                            {text}
                        </option>
                    ))}
                    {!isPreset && <option value="given">{bytes(speed ?? 0)}/s</option>}
                </select>
            </label>
        </div>
    );
}
