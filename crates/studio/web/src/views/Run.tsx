// View of a session with headline, lanes, curves, events and exports.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Curves } from "../curves/Curves.tsx";
import { EventLog } from "../parts/EventLog.tsx";
import { ForkDialog } from "../parts/ForkDialog.tsx";
import { Notice } from "../parts/Notice.tsx";
import { HeadlineText, Lanes } from "../parts/Stage.tsx";
import { Transport } from "../parts/Transport.tsx";
import { encodeOrder } from "../state/permalink.ts";
import { begunAgain, go } from "../state/route.ts";
import { api, rememberOrder, rememberedOrder } from "../state/server.ts";
import { Session } from "../state/session.ts";

const FORMS: [string, string][] = [
    ["report.html", "report (HTML)"],
    ["experiment.toml", "experiment (TOML)"],
    ["run.py", "Python"],
    ["trace.json", "Perfetto trace"],
    ["result.json", "result (JSON)"],
];

export function RunView({ id, children }: { id: string; children?: (session: Session) => preact.ComponentChildren }) {
    const session = useMemo(() => Session.of(api, id), [id]);
    useEffect(() => () => session.close(), [session]);
    return <SessionView session={session} isTour={children !== undefined} extra={children} />;
}

export function SessionView({ session, isTour, extra }: { session: Session; isTour: boolean; extra?: ((session: Session) => preact.ComponentChildren) | undefined }) {
    const isForking = useSignal(false);
    const order = session.order.value;
    const isEmpty = session.connection.value === "gone" && session.lanes.value.length === 0;
    useEffect(() => {
        if (order !== null) rememberOrder(session.id, order);
    }, [order]);
    return (
        <main id="content" tabIndex={-1} class={`run ${isTour ? "in-tour" : ""} ${isEmpty ? "narrow" : ""}`}>
            <div class="run-head">
                <SessionName session={session} />
                <div class="actions" hidden={session.connection.value === "gone"}>
                    <button type="button" onClick={() => (isForking.value = true)} disabled={session.lanes.value.length === 0}>
                        Fork from here
                    </button>
                    <CopyLink session={session} />
                    <Exports session={session} />
                    <button type="button" class="quiet" onClick={() => void end(session)}>
                        End
                    </button>
                </div>
            </div>
            <ConnectionNotice session={session} />
            {session.problem.value !== null && (
                <Notice kind="error" onClose={() => (session.problem.value = null)}>
                    {session.problem.value}
                </Notice>
            )}
            {!isEmpty && (
                <>
                    <HeadlineText session={session} />
                    <Lanes session={session} isTour={isTour} />
                    {session.lanes.value.length > 0 && (
                        <div class="below">
                            <Curves session={session} />
                            <EventLog session={session} />
                        </div>
                    )}
                    <ForkDialog session={session} open={isForking} />
                    {extra?.(session)}
                    <Transport session={session} />
                </>
            )}
        </main>
    );
}

/** Name of the session, which can be edited, and its description. */
function SessionName({ session }: { session: Session }) {
    const given = useSignal<string | null>(null);
    const name = session.name.value;
    useEffect(() => {
        if (name !== "") document.title = `${name} · WARP Studio`;
    }, [name]);
    if (name === "") return <h1>{session.connection.value === "gone" ? "No session" : "…"}</h1>;
    const rename = async () => {
        const wanted = given.value?.trim() ?? "";
        given.value = null;
        if (wanted === "" || wanted === name) return;
        try {
            await api.rename(session.id, wanted);
        } catch (error) {
            session.problem.value = error instanceof Error ? error.message : String(error);
        }
    };
    if (given.value !== null) {
        return (
            <form
                class="naming"
                onSubmit={(event) => {
                    event.preventDefault();
                    void rename();
                }}
            >
                <input
                    type="text"
                    aria-label="Name of the session"
                    value={given.value}
                    maxLength={80}
                    ref={(field) => field?.focus()}
                    onInput={(event) => (given.value = event.currentTarget.value)}
                    onKeyDown={(event) => event.key === "Escape" && (given.value = null)}
                />
                <button type="submit">Rename</button>
            </form>
        );
    }
    return (
        <div class="named">
            <h1 title={name}>{name}</h1>
            {session.connection.value !== "gone" && (
                <button type="button" class="quiet" onClick={() => (given.value = name)}>
                    Rename
                </button>
            )}
            {session.title.value !== name && <p class="note">{session.title.value}</p>}
        </div>
    );
}

async function end(session: Session): Promise<void> {
    await api.end(session.id).catch(() => {
        // The session has ended, or the server with its sessions has stopped.
    });
    go("#/");
}

/** Notice for a lost server or session. Restarts the session from its order. */
function ConnectionNotice({ session }: { session: Session }) {
    const connection = session.connection.value;
    const problem = useSignal<string | null>(null);
    useEffect(() => {
        if (connection !== "gone") return;
        const order = rememberedOrder(session.id);
        if (order === null) {
            problem.value = "There is no such session. It has ended, or it was a session of another server.";
            return;
        }
        api.begin(order).then(
            (id) => {
                rememberOrder(id, order);
                sessionStorage.setItem("warp.begun-again", id);
                begunAgain.value += 1;
                go(`#/session/${id}`);
            },
            (error: unknown) => (problem.value = `The run could not be restarted. ${error instanceof Error ? error.message : String(error)}`),
        );
    }, [connection]);
    if (connection === "lost") return <Notice kind="waiting">The server does not answer. The page shows the last state and reconnects automatically. If the server has stopped, start it with `warp studio`.</Notice>;
    if (connection === "gone") {
        return (
            <Notice kind="waiting">
                {problem.value ?? "The server was restarted. The page restarts the run …"} {problem.value !== null && <a href="#/">Start a new run</a>}
            </Notice>
        );
    }
    if (connection === "live" && sessionStorage.getItem("warp.begun-again") === session.id) {
        return (
            <Notice kind="note" onClose={() => { sessionStorage.removeItem("warp.begun-again"); session.told.value += 1; }}>
                The server was restarted, so the page restarted this run. Runs are deterministic, so the numbers will be the same.
            </Notice>
        );
    }
    return null;
}

function CopyLink({ session }: { session: Session }) {
    const said = useSignal("Copy link");
    const copy = async () => {
        const order = session.order.value;
        if (order === null) return;
        const link = `${location.origin}${location.pathname}#/run/${await encodeOrder(order)}`;
        try {
            await navigator.clipboard.writeText(link);
            said.value = "Copied";
        } catch {
            // Without access to the clipboard, the link appears in a field to copy from.
            location.hash = `#/run/${await encodeOrder(order)}`;
            said.value = "See the address bar";
        }
        setTimeout(() => (said.value = "Copy link"), 2000);
    };
    return (
        <button type="button" onClick={() => void copy()} disabled={session.order.value === null} title="Copy a link that reproduces this run" style={{ minWidth: "7.5em" }}>
            {said.value}
        </button>
    );
}

function Exports({ session }: { session: Session }) {
    const fetchForm = async (form: string) => {
        try {
            const address = URL.createObjectURL(await api.export(session.id, form));
            const link = document.createElement("a");
            link.href = address;
            link.download = form;
            link.click();
            setTimeout(() => URL.revokeObjectURL(address), 10_000);
        } catch (error) {
            session.problem.value = error instanceof Error ? error.message : String(error);
        }
    };
    return (
        <label class="export">
            <span class="hidden">Export</span>
            <select
                value=""
                onChange={(event) => {
                    const form = event.currentTarget.value;
                    event.currentTarget.value = "";
                    if (form !== "") void fetchForm(form);
                }}
            >
                <option value="">Export as …</option>
                {FORMS.map(([form, text]) => (
                    <option value={form} key={form}>
                        {text}
                    </option>
                ))}
            </select>
        </label>
    );
}
