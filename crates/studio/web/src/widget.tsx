// The same components in a notebook: an anywidget module.
//
//   model: url, token, and either session (an id) or order (an Order, begun here) -> a session -> the same stage as the page's
//
// Styles are in the module and apply only inside its own root, so that a notebook keeps its looks; light or dark is the notebook's.
// The server is another origin than the notebook's page, and answers because the token is shown.
import { render } from "preact";
import { Curves } from "./curves/Curves.tsx";
import { ForkDialog } from "./parts/ForkDialog.tsx";
import { Notice } from "./parts/Notice.tsx";
import { HeadlineText, Lanes } from "./parts/Stage.tsx";
import { Transport } from "./parts/Transport.tsx";
import { followNotebook } from "./state/host.ts";
import { Session } from "./state/session.ts";
import { Api, ApiError } from "./wire/api.ts";
import type { Order } from "./wire/messages.ts";
import { signal } from "@preact/signals";
import plotStyles from "uplot/dist/uPlot.min.css?inline";
import styles from "./styles.css?inline";

/** What anywidget gives of its model. */
interface Model {
    get(name: string): unknown;
}

function Widget({ session }: { session: Session }) {
    const isForking = signal(false);
    const connection = session.connection.value;
    return (
        // It can be pressed, so that keys are meant for it from then on.
        <div class="run widget" tabIndex={-1}>
            <div class="run-head">
                <h1>{session.title.value}</h1>
                <div class="actions">
                    <button type="button" onClick={() => (isForking.value = true)}>
                        Fork from here
                    </button>
                </div>
            </div>
            {connection === "lost" && <Notice kind="waiting">The engine does not answer. The widget shows the last state.</Notice>}
            {connection === "gone" && <Notice kind="waiting">This run has ended. Run the cell again to restart it.</Notice>}
            {session.problem.value !== null && <Notice kind="error">{session.problem.value}</Notice>}
            <HeadlineText session={session} />
            {/* Above the drive: nothing stays at the lower edge of a notebook. */}
            <Transport session={session} />
            <Lanes session={session} />
            <Curves session={session} />
            <ForkDialog session={session} open={isForking} />
        </div>
    );
}

/** What went wrong, for whoever looks at the notebook. */
function sentenceOf(error: unknown, url: string): string {
    if (error instanceof ApiError && error.status === 0) {
        return (
            `The browser cannot reach the notebook's kernel at ${url}. If the kernel was restarted, run the cell again. ` +
            `If it is on another machine, forward its port to this machine with ssh -L ${new URL(url).port}:${new URL(url).host} MACHINE.`
        );
    }
    return error instanceof Error ? error.message : String(error);
}

async function begin(model: Model, root: ShadowRoot | HTMLElement): Promise<() => void> {
    const api = new Api(String(model.get("url") ?? ""), (model.get("token") as string | undefined) || null);
    const order = model.get("order") as Order | null | undefined;
    const given = model.get("session") as string | null | undefined;
    const id = given || (order ? await api.begin(order) : null);
    if (id === null) throw new Error("The widget has neither an order nor a session. Give it one of them.");
    const session = Session.of(api, id);
    render(<Widget session={session} />, root);
    return () => {
        render(null, root);
        session.close();
        // A session that the widget began is its own to end; one that was given is not.
        if (!given) void api.end(id).catch(() => {});
    };
}

export default {
    render({ model, el }: { model: Model; el: HTMLElement }): () => void {
        // Keys that are pressed here are not the notebook's: one of its own deletes cells.
        el.dataset["lmSuppressShortcuts"] = "true";
        const root = el.attachShadow({ mode: "open" });
        const style = document.createElement("style");
        style.textContent = plotStyles + styles;
        const place = document.createElement("div");
        place.className = "warp-studio";
        root.append(style, place);
        const unfollow = followNotebook(place);
        let end: (() => void) | null = null;
        let isOver = false;
        begin(model, place).then(
            (made) => {
                if (isOver) made();
                else end = made;
            },
            (error: unknown) => {
                render(<Notice kind="error">{sentenceOf(error, String(model.get("url") ?? ""))}</Notice>, place);
            },
        );
        return () => {
            isOver = true;
            unfollow();
            end?.();
        };
    },
};
