// Capabilities of the server, read at the start and after each reconnection.
import { batch, signal } from "@preact/signals";
import { Api, ApiError } from "../wire/api.ts";
import { waitMs } from "../wire/live.ts";
import type { About, Catalogue, Order } from "../wire/messages.ts";

export const api = Api.ofPage();
export const about = signal<About | null>(null);
export const catalogue = signal<Catalogue | null>(null);
/** Reason for a missing catalogue, in one sentence. null if it exists or is loading. */
export const trouble = signal<string | null>(null);

/** Repeats the request until the server answers. */
export async function meet(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
        try {
            const known = await api.about();
            // A server of a drive may have no catalogue.
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

/** Orders of this tab's sessions, to restart a run after a restart of the server. */
export function rememberOrder(id: string, order: Order): void {
    try {
        sessionStorage.setItem(`warp.order.${id}`, JSON.stringify(order));
    } catch {
        // Without storage, the page cannot restart the run, but the permalink can.
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
