// The components of the page as an anywidget module for notebooks.
//
//   model: url, token, and either session (an id) or order (started here) -> a session
//     -> the same stage as on the page
//
// The module contains its styles, which apply only inside its own root. The colour scheme is the
// notebook's. The server has another origin than the notebook's page, so each request needs the
// token.
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

/** Part of anywidget's model that this module uses. */
interface Model {
    get(name: string): unknown;
}

function Widget({ session }: { session: Session }) {
    const isForking = signal(false);
    const connection = session.connection.value;
    return (
        // The widget takes the focus on a click and then receives keyboard shortcuts.
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

/** Error message in the notebook. */
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
        // The widget ends a session that it started, but not a session that it was given.
        if (!given) void api.end(id).catch(() => {});
    };
}

export default {
    render({ model, el }: { model: Model; el: HTMLElement }): () => void {
        // Keys pressed in the widget do not reach the notebook, whose shortcuts include deletion of
        // cells.
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
