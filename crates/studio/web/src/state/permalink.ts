// Session order in an address, as deflated JSON in base64url.
//
//   Order <-> JSON <-> deflate-raw <-> base64url <-> #/run/...
//
// Equal orders give equal addresses, because keys have a fixed sequence and omitted values are
// written as defaults.
import { base64url, fromBase64url } from "../wire/api.ts";
import type { Order, OrderFork, OrderLane } from "../wire/messages.ts";

/** Maximum size of an unpacked order, the server's limit for a body. */
const MOST_BYTES = 1 << 20;

/** Error for an address without a valid order. The page shows its message. */
export class PermalinkError extends Error {}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream): Promise<Uint8Array<ArrayBuffer>> {
    const written = new Blob([bytes]).stream().pipeThrough(stream);
    const reader = written.getReader();
    const parts: Uint8Array[] = [];
    let length = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        length += value.length;
        if (length > MOST_BYTES) {
            await reader.cancel();
            throw new PermalinkError("This link is longer than 1 MiB when unpacked, so the page does not open it. Start the run from its files instead.");
        }
        parts.push(value);
    }
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
        all.set(part, at);
        at += part.length;
    }
    return all;
}

/** Order with its keys in a fixed sequence. */
export function canonical(order: Order): Order {
    const sorted = <T>(keys: Record<string, T>): Record<string, T> => Object.fromEntries(Object.entries(keys).sort(([a], [b]) => (a < b ? -1 : 1)));
    const { name, experiment, workload, device, scale, drive_writes, precondition_drive_writes, timed, seed, lanes, forks, ...options } = order;
    return {
        ...(name === undefined ? {} : { name }),
        experiment,
        workload: workload === null ? null : workload.text === undefined ? { name: workload.name } : { name: workload.name, text: workload.text },
        device,
        scale,
        drive_writes,
        precondition_drive_writes,
        timed,
        seed,
        lanes: lanes.map((lane): OrderLane => ({ name: lane.name, variants: lane.variants, set: sorted(lane.set) })),
        forks: forks.map((fork): OrderFork => ({ of: fork.of, name: fork.name, at_host_bytes: fork.at_host_bytes, set: sorted(fork.set) })),
        ...sorted(options),
    };
}

/** True if two orders describe the same run, regardless of forks and names. */
export function beginsAlike(one: Order, other: Order): boolean {
    const run = ({ name: _, ...order }: Order) => JSON.stringify(canonical({ ...order, forks: [] }));
    return run(one) === run(other);
}

export async function encodeOrder(order: Order): Promise<string> {
    const json = new TextEncoder().encode(JSON.stringify(canonical(order)));
    return base64url(await through(json, new CompressionStream("deflate-raw")));
}

export async function decodeOrder(text: string): Promise<Order> {
    const broken = "This link is damaged or incomplete. Copy it again, or start a new run.";
    let value: unknown;
    try {
        const json = await through(fromBase64url(text), new DecompressionStream("deflate-raw"));
        value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
    } catch (error) {
        throw error instanceof PermalinkError ? error : new PermalinkError(broken);
    }
    if (typeof value !== "object" || value === null) throw new PermalinkError(broken);
    const { name, ...given } = value as Partial<Order>;
    if (!Array.isArray(given.lanes) || given.lanes.length === 0) throw new PermalinkError(broken);
    // The server checks the content and reports errors. This function checks only the types.
    return canonical({
        ...given,
        ...(typeof name === "string" ? { name } : {}),
        experiment: given.experiment ?? null,
        workload: given.workload ?? null,
        device: given.device ?? null,
        scale: given.scale ?? null,
        drive_writes: given.drive_writes ?? null,
        precondition_drive_writes: given.precondition_drive_writes ?? null,
        timed: given.timed ?? null,
        seed: given.seed ?? 1,
        lanes: given.lanes.map((lane) => ({ name: lane.name ?? "", variants: lane.variants ?? [], set: lane.set ?? {} })),
        forks: (given.forks ?? []).map((fork) => ({ of: fork.of, name: fork.name, at_host_bytes: fork.at_host_bytes, set: fork.set ?? {} })),
    });
}
