// Opens a permalink. It starts a session with its order and goes to it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Notice } from "../parts/Notice.tsx";
import { decodeOrder } from "../state/permalink.ts";
import { api, rememberOrder } from "../state/server.ts";
import { RunView } from "./Run.tsx";

export function OpenLink({ order }: { order: string }) {
    const id = useSignal<string | null>(null);
    const problem = useSignal<string | null>(null);
    useEffect(() => {
        id.value = null;
        problem.value = null;
        let isCurrent = true;
        (async () => {
            try {
                const decoded = await decodeOrder(order);
                const begun = await api.begin(decoded);
                rememberOrder(begun, decoded);
                if (isCurrent) id.value = begun;
            } catch (error) {
                if (isCurrent) problem.value = error instanceof Error ? error.message : String(error);
            }
        })();
        return () => {
            isCurrent = false;
        };
    }, [order]);
    if (problem.value !== null) {
        return (
            <main id="content" tabIndex={-1} class="narrow">
                <h1>The link cannot be opened</h1>
                <Notice kind="error">{problem.value}</Notice>
                <p>
                    <a href="#/">Start a new run</a>
                </p>
            </main>
        );
    }
    if (id.value === null) {
        return (
            <main id="content" tabIndex={-1} class="narrow" aria-busy="true">
                <h1>Starting the run of this link …</h1>
            </main>
        );
    }
    return <RunView id={id.value} />;
}
