// Current view, which is the part of the address after the #.
import { signal } from "@preact/signals";

export type Route =
    | { view: "start" }
    | { view: "session"; id: string }
    | { view: "run"; order: string }
    | { view: "compare" }
    | { view: "tour"; story: string | null }
    | { view: "drive" };

export function readRoute(hash: string): Route {
    const [view, argument] = hash.replace(/^#\/?/, "").split("/");
    switch (view) {
        case "session":
            return argument ? { view, id: decodeURIComponent(argument) } : { view: "start" };
        case "run":
            return argument ? { view, order: argument } : { view: "start" };
        case "tour":
            return { view, story: argument ? decodeURIComponent(argument) : null };
        case "compare":
        case "drive":
            return { view };
        default:
            return { view: "start" };
    }
}

export const route = signal<Route>(readRoute(globalThis.location?.hash ?? ""));
globalThis.addEventListener?.("hashchange", () => (route.value = readRoute(location.hash)));

/**
 * Incremented when a session is restarted, because a new server may reuse the identifier of the old
 * session.
 */
export const begunAgain = signal(0);

export function go(hash: string): void {
    location.hash = hash;
}
