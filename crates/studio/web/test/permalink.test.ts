import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { beginsAlike, decodeOrder, encodeOrder } from "../src/state/permalink.ts";
import { readRoute } from "../src/state/route.ts";
import { base64url, fromBase64url } from "../src/wire/api.ts";
import type { Order } from "../src/wire/messages.ts";

const ORDER: Order = {
    experiment: null,
    workload: { name: "mine.fio", text: "[job]\nrw=randwrite\n; Größe: 4 µs 😀\n" },
    device: "ssd_a",
    scale: "1/512",
    drive_writes: 3.5,
    precondition_drive_writes: null,
    timed: false,
    seed: 7,
    lanes: [{ name: "FDP", variants: [], set: { "gc.victim_policy": { d_choices: 8 }, "geometry.over_provisioning": 0.28 } }],
    forks: [{ of: 0, name: "OP 40 %", at_host_bytes: 2 ** 41 + 1, set: { "geometry.over_provisioning": 0.4 } }],
};

describe("a permalink", () => {
    it("gives the order back", async () => {
        expect(await decodeOrder(await encodeOrder(ORDER))).toEqual(ORDER);
        const named = { ...ORDER, name: "more room" };
        expect(await decodeOrder(await encodeOrder(named))).toEqual(named);
        const bounded = { ...ORDER, steady_state: true, tail_drive_writes: 0.5 };
        expect(await decodeOrder(await encodeOrder(bounded))).toEqual(bounded);
        expect(beginsAlike(ORDER, bounded)).toBe(false);
    });
    it("is the same for equal orders, whatever the order of keys", async () => {
        const [lane] = ORDER.lanes;
        const other = { lanes: [{ set: Object.fromEntries(Object.entries(lane?.set ?? {}).reverse()), variants: [], name: "FDP" }], ...Object.fromEntries(Object.entries(ORDER).filter(([key]) => key !== "lanes").reverse()) } as unknown as Order;
        expect(await encodeOrder(other)).toBe(await encodeOrder(ORDER));
    });
    it("is of the same run whatever was forked from it, and of no other", () => {
        expect(beginsAlike(ORDER, { ...ORDER, forks: [] })).toBe(true);
        expect(beginsAlike(ORDER, { ...ORDER, name: "mine" })).toBe(true);
        expect(beginsAlike(ORDER, { ...ORDER, seed: 8 })).toBe(false);
        expect(beginsAlike(ORDER, { ...ORDER, lanes: [{ name: "FDP", variants: [], set: {} }] })).toBe(false);
    });
    it("is an address that nothing has to be escaped in", async () => {
        const link = await encodeOrder(ORDER);
        expect(link).toMatch(/^[\w-]+$/);
        expect(readRoute(`#/run/${link}`)).toEqual({ view: "run", order: link });
    });
    it("that is broken says so", async () => {
        const link = await encodeOrder(ORDER);
        for (const wrong of ["", "!!!", link.slice(0, -9), base64url(deflateRawSync("[]")), base64url(deflateRawSync("{\"lanes\":[]}")), base64url(deflateRawSync("null"))]) {
            await expect(decodeOrder(wrong)).rejects.toThrow(/damaged or incomplete/);
        }
    });
    it("does not unpack a bomb", async () => {
        await expect(decodeOrder(base64url(deflateRawSync(Buffer.alloc(50 << 20))))).rejects.toThrow(/longer than 1 MiB/);
    });
    it("fills in what an older one leaves out", async () => {
        const link = base64url(deflateRawSync(JSON.stringify({ experiment: "three_stream", device: "ssd_a", lanes: [{ name: "a" }] })));
        expect(await decodeOrder(link)).toMatchObject({ seed: 1, drive_writes: null, forks: [], lanes: [{ name: "a", variants: [], set: {} }] });
    });
});

describe("bytes as text", () => {
    it("go there and back", () => {
        for (let length = 0; length < 70; length += 1) {
            const bytes = Uint8Array.from({ length }, (_, index) => (index * 151 + length) & 255);
            expect(fromBase64url(base64url(bytes))).toEqual(bytes);
        }
    });
});
