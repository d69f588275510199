// Start page with an experiment and its variants, or a device with your own workload.
import { useComputed, useSignal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { LateEditor } from "../editor/LateEditor.tsx";
import { Choice } from "../parts/Choice.tsx";
import { SettingFields, settingOf } from "../parts/ForkDialog.tsx";
import { Notice } from "../parts/Notice.tsx";
import { Prose } from "../parts/Prose.tsx";
import { TwoPress } from "../parts/TwoPress.tsx";
import { freeName, nameOf } from "../state/knobs.ts";
import { bytes, counted, moment } from "../state/numbers.ts";
import { go } from "../state/route.ts";
import { api, catalogue, rememberOrder, trouble } from "../state/server.ts";
import { ApiError } from "../wire/api.ts";
import type { Catalogue, ExperimentEntry, Order, OrderLane, Problem, SessionEntry } from "../wire/messages.ts";

/** Maximum lanes of a session. */
const MOST_LANES = 8;
/**
 * Maximum size of a workload text, which is the server's limit for a body, less space for the rest
 * of the order.
 */
const MOST_TEXT = 900 * 1024;
const VARIANT = "variant";

const SCALES = ["1/1", "1/16", "1/64", "1/128", "1/256", "1/512", "1/1024", "1/2048", "1/4096"];

interface Draft {
    scale: Signal<string>;
    write: Signal<string>;
    precondition_drive_writes: Signal<string>;
    timed: Signal<string>;
    seed: Signal<string>;
    array: Signal<string>;
    name: Signal<string>;
}

export function StartView() {
    const what = useSignal<"experiment" | "own">("experiment");
    const known = catalogue.value;
    const sessions = useSessions();
    // The content above the choice is rendered before the catalogue arrives, so that the choice
    // does not move.
    const isReady = known !== null && sessions !== null;
    return (
        <main id="content" tabIndex={-1} class="start">
            <div class="intro">
                <h1>Watch a drive at work</h1>
                <p>Choose a workload and a drive. Watch how the drive fills and collects its reclaim units. Go back, change a setting, and run both side by side.</p>
                <p>
                    <a href="#/tour">New here? Take the tour of five one-minute stories</a>
                </p>
            </div>
            {trouble.value !== null && <Notice kind="waiting">{trouble.value}</Notice>}
            {!isReady ? (
                <div class="columns skeleton" aria-busy="true" />
            ) : (
                <>
                    <Running sessions={sessions.list} ask={sessions.ask} />
                    <Choice
                        label="type of run"
                        value={what.value}
                        onChange={(next) => (what.value = next)}
                        choices={[
                            ["experiment", "An experiment"],
                            ["own", "A device and a workload"],
                        ]}
                    />
                    {what.value === "experiment" ? <Experiments known={known} /> : <Own known={known} />}
                </>
            )}
        </main>
    );
}

/** Sessions of the server, with an immediate reload. null before the first answer. */
function useSessions(): { list: SessionEntry[]; ask: () => void } | null {
    const sessions = useSignal<SessionEntry[] | null>(null);
    const isOver = useRef(false);
    const ask = () => {
        api.sessions().then(
            (all) => {
                if (!isOver.current) sessions.value = all;
            },
            () => {
                // The notice above reports the error. The list keeps its previous content.
            },
        );
    };
    useEffect(() => {
        isOver.current = false;
        ask();
        const timer = setInterval(ask, 3000);
        return () => {
            isOver.current = true;
            clearInterval(timer);
        };
    }, []);
    return sessions.value === null ? null : { list: sessions.value, ask };
}

/** Running sessions, to open or end. */
function Running({ sessions, ask }: { sessions: SessionEntry[]; ask: () => void }) {
    const problem = useSignal<string | null>(null);
    if (sessions.length === 0) return null;
    const end = async (id: string) => {
        problem.value = null;
        try {
            await api.end(id);
        } catch (error) {
            // A session that has already ended needs no further action.
            if (!(error instanceof ApiError && error.status === 404)) problem.value = error instanceof Error ? error.message : String(error);
        }
        ask();
    };
    return (
        <section class="running" aria-label="Sessions on this server">
            <h2>Sessions on this server</h2>
            {problem.value !== null && <Notice kind="error">{problem.value}</Notice>}
            <ul>
                {sessions.map((session) => (
                    <li key={session.id}>
                        <a href={`#/session/${session.id}`} title={session.title}>
                            {session.name}
                        </a>
                        <span>
                            {counted(session.lanes, "lane")}, {session.phase}, started {moment(session.begun_unix_ms, Date.now())}
                        </span>
                        <TwoPress text="End" again="Press again to end" of={session.name} isBusy={false} onAct={() => void end(session.id)} />
                    </li>
                ))}
            </ul>
        </section>
    );
}

function useDraft(): Draft {
    return { scale: useSignal(""), write: useSignal(""), precondition_drive_writes: useSignal(""), timed: useSignal(""), seed: useSignal("1"), array: useSignal(""), name: useSignal("") };
}

function number(text: string): number | null {
    return text.trim() === "" ? null : Number(text);
}

function orderOf(draft: Draft, rest: Pick<Order, "experiment" | "workload" | "device" | "lanes">): Order {
    const [name, array] = [draft.name.value.trim(), draft.array.value.trim()];
    return {
        ...(name === "" ? {} : { name }),
        ...(array === "" ? {} : { array }),
        ...rest,
        scale: draft.scale.value === "" ? null : draft.scale.value,
        drive_writes: number(draft.write.value),
        precondition_drive_writes: number(draft.precondition_drive_writes.value),
        timed: draft.timed.value === "" ? null : draft.timed.value === "timed",
        seed: number(draft.seed.value) ?? 1,
        forks: [],
    };
}

function Lengths({ draft, isOwn }: { draft: Draft; isOwn: boolean }) {
    const given = isOwn ? "none" : "the experiment's";
    return (
        <fieldset class="fields">
            <legend>
                Size and length{" "}
                {!isOwn && <em>empty fields use the values of the experiment</em>}
            </legend>
            <label>
                scale of the model
                <select value={draft.scale.value} onChange={(event) => (draft.scale.value = event.currentTarget.value)}>
                    {!isOwn && <option value="">{given}</option>}
                    {SCALES.map((scale) => (
                        <option key={scale}>{scale}</option>
                    ))}
                </select>
            </label>
            <label>
                drive writes
                <input type="number" min="0.01" max="1000" step="any" placeholder={isOwn ? "3" : given} value={draft.write.value} onInput={(event) => (draft.write.value = event.currentTarget.value)} />
            </label>
            <label>
                drive writes before the run
                <input type="number" min="0" max="100" step="any" placeholder={isOwn ? "0" : given} value={draft.precondition_drive_writes.value} onInput={(event) => (draft.precondition_drive_writes.value = event.currentTarget.value)} />
            </label>
            <label>
                clock
                <select value={draft.timed.value} onChange={(event) => (draft.timed.value = event.currentTarget.value)}>
                    <option value="">{isOwn ? "the device's" : given}</option>
                    <option value="timed">virtual time</option>
                    <option value="untimed">no time</option>
                </select>
            </label>
            <label>
                seed
                <input type="number" min="0" step="1" value={draft.seed.value} onInput={(event) => (draft.seed.value = event.currentTarget.value)} />
            </label>
            <label title="A lane for each drive of the array">
                array of drives
                <input type="text" maxLength={200} placeholder="raid5,drives=4" value={draft.array.value} onInput={(event) => (draft.array.value = event.currentTarget.value)} />
            </label>
            <label>
                name of the session
                <input type="text" maxLength={80} placeholder="name of the workload" value={draft.name.value} onInput={(event) => (draft.name.value = event.currentTarget.value)} />
            </label>
        </fieldset>
    );
}

function StartButton({ order, sentence }: { order: Order | null; sentence: string }) {
    const isSent = useSignal(false);
    const problem = useSignal<string | null>(null);
    const begin = async () => {
        if (order === null) return;
        isSent.value = true;
        problem.value = null;
        try {
            const id = await api.begin(order);
            rememberOrder(id, order);
            go(`#/session/${id}`);
        } catch (error) {
            problem.value = error instanceof Error ? error.message : String(error);
        } finally {
            isSent.value = false;
        }
    };
    return (
        <div class="begin">
            {problem.value !== null && <Notice kind="error">{problem.value}</Notice>}
            <p>
                <Prose>{sentence}</Prose>
            </p>
            <button type="button" class="primary large" disabled={order === null || isSent.value} onClick={() => void begin()}>
                {isSent.value ? "Preparing the drive …" : "Start"}
            </button>
        </div>
    );
}

function Experiments({ known }: { known: Catalogue }) {
    const search = useSignal("");
    const chosen = useSignal(known.experiments.find((one) => one.name === "three_stream")?.name ?? known.experiments[0]?.name ?? "");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = known.experiments.filter((one) => words.every((word) => `${one.name} ${one.title}`.toLowerCase().includes(word)));
    const entry = known.experiments.find((one) => one.name === chosen.value);
    const list = useRef<HTMLUListElement>(null);
    // Scrolls only the list to the initial choice, which may be far down.
    useLayoutEffect(() => {
        const row = list.current?.querySelector("input:checked")?.closest("li");
        if (list.current !== null && row) list.current.scrollTop = row.offsetTop - list.current.offsetTop - row.offsetHeight;
    }, []);
    return (
        <div class="columns">
            <section class="pick" aria-label="Experiments">
                <input type="search" aria-label="Search the experiments" placeholder={`Search ${known.experiments.length} experiments`} value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
                <ul class="choices" ref={list}>
                    {shown.map((one) => (
                        <li key={one.name}>
                            <label>
                                <input type="radio" name="experiment" checked={one.name === chosen.value} onChange={() => (chosen.value = one.name)} />
                                <span>
                                    <b>{one.title}</b>
                                    <code>{one.name}</code>
                                </span>
                            </label>
                        </li>
                    ))}
                    {shown.length === 0 && (
                        <li class="empty">
                            No experiment matches the search. <button type="button" class="link" onClick={() => (search.value = "")}>Show all</button>
                        </li>
                    )}
                </ul>
            </section>
            {entry === undefined ? <p class="empty"><Prose>This server has no experiments. Start `warp studio` in a folder with `experiments/`, or run a device with a workload.</Prose></p> : <ExperimentForm entry={entry} known={known} key={entry.name} />}
        </div>
    );
}

/** Name and description of a device. */
function titled(known: Catalogue, name: string): string {
    const title = known.devices.find((one) => one.name === name)?.title;
    return title === undefined ? name : `${name}: ${title}`;
}

/** One value for each dimension. One dimension may have several values, which become the lanes. */
function ExperimentForm({ entry, known }: { entry: ExperimentEntry; known: Catalogue }) {
    const draft = useDraft();
    const dimensions = useMemo(() => [...(entry.variants.length > 0 ? [{ name: VARIANT, values: entry.variants }] : []), ...entry.axes], [entry]);
    const device = useSignal(entry.devices[0] ?? known.devices[0]?.name ?? "");
    const beside = useSignal(dimensions[0]?.name ?? "");
    const picked = useSignal<Record<string, string[]>>(Object.fromEntries(dimensions.map((one, index) => [one.name, index === 0 ? one.values.slice(0, 3) : one.values.slice(0, 1)])));
    const lanes = useComputed((): OrderLane[] => {
        const fixed = dimensions.filter((one) => one.name !== beside.value).flatMap((one) => picked.value[one.name]?.slice(0, 1) ?? []);
        const along = dimensions.find((one) => one.name === beside.value);
        if (along === undefined) return [{ name: entry.name, variants: [], set: {} }];
        return along.values.filter((value) => picked.value[along.name]?.includes(value)).map((value) => ({ name: value, variants: [value, ...fixed], set: {} }));
    });
    const put = (name: string, values: string[]) => (picked.value = { ...picked.value, [name]: values });
    const makeBeside = (name: string) => {
        const before = beside.value;
        beside.value = name;
        const now = dimensions.find((one) => one.name === name);
        picked.value = { ...picked.value, [before]: picked.value[before]?.slice(0, 1) ?? [], [name]: now?.values.slice(0, 3) ?? [] };
    };
    const count = lanes.value.length;
    const isGood = count >= 1 && count <= MOST_LANES && device.value !== "";
    const order = isGood ? orderOf(draft, { experiment: entry.name, workload: null, device: device.value, lanes: lanes.value }) : null;
    const sentence = count === 0 ? `Choose at least one ${beside.value}.` : count > MOST_LANES ? `A session has at most ${MOST_LANES} lanes, but ${count} are chosen.` : `${count === 1 ? "One lane" : `${count} lanes in step`} on ${device.value}${entry.seconds === null ? "" : `. With \`warp run\`, the whole experiment takes about ${Math.max(1, Math.round(entry.seconds))} s`}.`;
    return (
        <section class="form" aria-label={entry.title}>
            <h2>{entry.title}</h2>
            <fieldset class="fields">
                <legend>Device</legend>
                <label class="wide">
                    <span class="hidden">device</span>
                    <select value={device.value} onChange={(event) => (device.value = event.currentTarget.value)}>
                        {[...new Set([...entry.devices, ...known.devices.map((one) => one.name)])].map((name) => (
                            <option key={name} value={name}>
                                {titled(known, name)}
                                {entry.devices.includes(name) ? "" : " (not in the experiment)"}
                            </option>
                        ))}
                    </select>
                </label>
            </fieldset>
            {dimensions.map((dimension) => {
                const isBeside = dimension.name === beside.value;
                const values = picked.value[dimension.name] ?? [];
                return (
                    <fieldset class="chips" key={dimension.name}>
                        <legend>
                            {dimension.name.charAt(0).toUpperCase() + dimension.name.slice(1)}
                            {dimensions.length > 1 &&
                                (isBeside ? (
                                    <em>side by side</em>
                                ) : (
                                    <button type="button" class="link" onClick={() => makeBeside(dimension.name)}>
                                        compare side by side
                                    </button>
                                ))}
                        </legend>
                        {dimension.values.map((value) => (
                            <label class="chip" key={value}>
                                <input
                                    type={isBeside ? "checkbox" : "radio"}
                                    name={`dimension ${dimension.name}`}
                                    checked={values.includes(value)}
                                    onChange={() => put(dimension.name, !isBeside ? [value] : values.includes(value) ? values.filter((one) => one !== value) : [...values, value])}
                                />
                                <span>{value}</span>
                            </label>
                        ))}
                    </fieldset>
                );
            })}
            <Lengths draft={draft} isOwn={false} />
            <StartButton order={order} sentence={sentence} />
        </section>
    );
}

type Source = "job" | "workload" | "trace";

const FIRST_JOB = `; Two streams with a handle each.
; One writes in order, the other at random.
[global]
filename=/dev/ng0n1
ioengine=io_uring_cmd
cmd_type=nvme
dataplacement=fdp

[sequential]
rw=write
bs=128k
size=80%
time_based
runtime=24h
rate=500m
plids=0

[random]
rw=randwrite
bs=4k
norandommap
offset=80%
size=20%
time_based
runtime=24h
rate=250m
plids=1
`;

function Own({ known }: { known: Catalogue }) {
    const draft = useDraft();
    useEffect(() => {
        draft.scale.value = "1/512";
    }, []);
    const device = useSignal(known.devices.find((one) => one.name === "ssd_a")?.name ?? known.devices[0]?.name ?? "");
    const source = useSignal<Source>("job");
    const name = useSignal("mine.fio");
    const text = useSignal(FIRST_JOB);
    const preset = useSignal("");
    const problems = useSignal<Problem[]>([]);
    const fault = useSignal<string | null>(null);
    const lanes = useSignal<OrderLane[]>([
        { name: "FDP", variants: [], set: {} },
        { name: "NoFDP", variants: [], set: { "workload.global.dataplacement": "none" } },
    ]);

    const load = async (kind: "jobs" | "workloads", which: string) => {
        preset.value = which;
        fault.value = null;
        if (which === "") return;
        try {
            text.value = await api.text(kind, which);
            name.value = kind === "jobs" ? `${which}.fio` : `${which}.toml`;
        } catch (error) {
            fault.value = error instanceof Error ? error.message : String(error);
        }
    };
    const turn = (next: Source) => {
        source.value = next;
        preset.value = "";
        problems.value = [];
        fault.value = null;
        text.value = next === "job" ? FIRST_JOB : "";
        name.value = next === "job" ? "mine.fio" : next === "workload" ? "" : "";
        if (next === "workload" && known.workloads[0] !== undefined) void load("workloads", known.workloads[0].name);
        if (next !== "job") lanes.value = [{ name: "unchanged", variants: [], set: {} }];
    };
    const upload = async (file: File | undefined) => {
        fault.value = null;
        if (file === undefined) return;
        if (file.size > MOST_TEXT) {
            fault.value = `${file.name} has ${bytes(file.size)}, but the page sends at most ${bytes(MOST_TEXT)}. Run it with \`warp run ${file.name}\`, or send only its beginning.`;
            return;
        }
        name.value = file.name;
        text.value = await file.text();
    };
    const entry = known.devices.find((one) => one.name === device.value);
    const isGood = text.value.trim() !== "" && name.value !== "" && lanes.value.length > 0 && problems.value.length === 0;
    const order = isGood
        ? { ...orderOf(draft, { experiment: null, workload: { name: name.value, text: text.value }, device: device.value, lanes: lanes.value }), drive_writes: number(draft.write.value) ?? 3 }
        : null;
    const sentence = problems.value.length > 0 ? `${problems.value.length === 1 ? "One line has" : `${problems.value.length} lines have`} errors. Correct the text first.` : text.value.trim() === "" ? "Choose a file first." : `${lanes.value.length === 1 ? "One lane" : `${lanes.value.length} lanes in step`} on ${device.value} at ${draft.scale.value}${entry === undefined ? "" : ` (${bytes(entry.capacity_bytes / Number(draft.scale.value.split("/")[1] ?? 1))})`}.`;
    return (
        <div class="columns own">
            <section class="pick" aria-label="Workload">
                <div class="bar">
                    <Choice<Source>
                        label="workload"
                        value={source.value}
                        onChange={turn}
                        choices={[
                            ["job", "fio job"],
                            ["workload", "model"],
                            ["trace", "trace"],
                        ]}
                    />
                    {source.value !== "trace" && (
                        <label class="inline">
                            from
                            <select value={preset.value} onChange={(event) => void load(source.value === "job" ? "jobs" : "workloads", event.currentTarget.value)}>
                                {source.value === "job" && <option value="">an example</option>}
                                {(source.value === "job" ? known.jobs : known.workloads).map((one) => (
                                    <option key={one.name} value={one.name} title={one.title}>
                                        {one.name}
                                    </option>
                                ))}
                            </select>
                        </label>
                    )}
                </div>
                {source.value === "trace" ? (
                    <label class="upload">
                        <input type="file" accept=".csv,.txt,.log,.iolog,.blkparse" onChange={(event) => void upload(event.currentTarget.files?.[0])} />
                        <span>{name.value === "" ? "Choose a trace (fio iolog, blkparse, MSR, Alibaba, Tencent or any CSV)" : `${name.value}, ${bytes(text.value.length)}`}</span>
                    </label>
                ) : (
                    <LateEditor text={text} problems={problems} check={() => api.check(name.peek(), text.peek())} label="Text of the workload" completes />
                )}
                {fault.value !== null && <Notice kind="error">{fault.value}</Notice>}
            </section>
            <section class="form" aria-label="Drive and lanes">
                <h2>Drive</h2>
                <fieldset class="fields">
                    <legend class="hidden">Drive</legend>
                    <label class="wide">
                        device
                        <select value={device.value} onChange={(event) => (device.value = event.currentTarget.value)}>
                            {known.devices.map((one) => (
                                <option key={one.name} value={one.name}>
                                    {titled(known, one.name)}
                                </option>
                            ))}
                        </select>
                    </label>
                </fieldset>
                <LaneList lanes={lanes} />
                <Lengths draft={draft} isOwn />
                <StartButton order={order} sentence={sentence} />
            </section>
        </div>
    );
}

/** Lanes of your own run, each with its changes. */
function LaneList({ lanes }: { lanes: Signal<OrderLane[]> }) {
    const path = useSignal("geometry.over_provisioning");
    const value = useSignal("0.28");
    const other = useSignal("");
    const isAdding = useSignal(false);
    return (
        <fieldset class="lane-list">
            <legend>Lanes, side by side</legend>
            <ul>
                {lanes.value.map((lane, index) => (
                    <li key={`${index} ${lane.name}`}>
                        <input type="text" aria-label={`Name of lane ${index + 1}`} value={lane.name} maxLength={60} onChange={(event) => (lanes.value = lanes.value.map((one, at) => (at === index ? { ...one, name: event.currentTarget.value } : one)))} />
                        <span>{Object.keys(lane.set).length === 0 ? "unchanged" : Object.entries(lane.set).map(([name, of]) => `${name} = ${JSON.stringify(of)}`).join(", ")}</span>
                        <button type="button" class="quiet" aria-label={`Remove lane ${lane.name}`} disabled={lanes.value.length === 1} onClick={() => (lanes.value = lanes.value.filter((_, at) => at !== index))}>
                            ×
                        </button>
                    </li>
                ))}
            </ul>
            {isAdding.value ? (
                <div class="fields">
                    <SettingFields path={path} value={value} other={other} />
                    <div class="buttons">
                        <button
                            type="button"
                            onClick={() => {
                                const set = settingOf(path.value, value.value, other.value);
                                if (Object.keys(set).length === 0) return;
                                lanes.value = [...lanes.value, { name: freeName(nameOf(set), lanes.value.map((one) => one.name)), variants: [], set }];
                                isAdding.value = false;
                            }}
                        >
                            Add this lane
                        </button>
                        <button type="button" class="quiet" onClick={() => (isAdding.value = false)}>
                            Cancel
                        </button>
                    </div>
                </div>
            ) : (
                <button type="button" disabled={lanes.value.length >= MOST_LANES} onClick={() => (isAdding.value = true)}>
                    Add a lane with another setting
                </button>
            )}
        </fieldset>
    );
}
