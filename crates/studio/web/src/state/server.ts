// The server as the page knows it: what it offers, asked once and again when it has come back.
import { batch, signal } from "@preact/signals";
import { Api, ApiError } from "../wire/api.ts";
import { waitMs } from "../wire/live.ts";
import type { About, Catalogue, Order } from "../wire/messages.ts";

export const api = Api.ofPage();
export const about = signal<About | null>(null);
export const catalogue = signal<Catalogue | null>(null);
/** Why there is no catalogue, in a sentence; null while it is there or asked for. */
export const trouble = signal<string | null>(null);

/** Asks until the server answers. */
export async function meet(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
        try {
            const known = await api.about();
            // A server that serves a drive may have no lab beside it.
            const offered = await api.catalogue().catch((error: unknown) => {
                if (known.drive && error instanceof ApiError && error.status === 404) return null;
                throw error;
            });
            batch(() => {
                about.value = known;
                catalogue.value = offered;
                trouble.value = null;
            });
            return;
        } catch (error) {
            trouble.value = error instanceof ApiError ? error.message : String(error);
            await new Promise((resolve) => setTimeout(resolve, waitMs(tries)));
        }
    }
}

/** Orders of this tab's sessions, so that a run can be begun again when the server was restarted. */
export function rememberOrder(id: string, order: Order): void {
    try {
        sessionStorage.setItem(`warp.order.${id}`, JSON.stringify(order));
    } catch {
        // A browser that keeps nothing cannot begin it again by itself; the link still can.
    }
}

export function rememberedOrder(id: string): Order | null {
    try {
        const kept = sessionStorage.getItem(`warp.order.${id}`);
        return kept === null ? null : (JSON.parse(kept) as Order);
    } catch {
        return null;
    }
}
