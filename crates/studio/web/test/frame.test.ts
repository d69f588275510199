import { describe, expect, it } from "vitest";
import { Frame, FrameError, encodeFrame } from "../src/wire/frame.ts";
import { parts } from "./sample.ts";

describe("a frame", () => {
    it("is read as it was written, field by field", () => {
        const given = parts({
            lane: 3,
            phase: "ended",
            whole: true,
            owners: [
                { hostBytes: 2 ** 40 + 1, copiedOut: 7, received: 8, validPages: 9, units: 10, reclaimed: 2 ** 32 - 1 },
                { hostBytes: 1, copiedOut: 2, received: 3, validPages: 4, units: 5, reclaimed: 6 },
            ],
            units: [{ unit: 65_535, state: 3, owner: 1, group: 513, valid: 2_000_000, written: 4_000_000_000 }],
            events: [
                { kind: "reclaim", owner: 1, why: 2, destinationOwner: 0, unit: 77, pages: 100, validPages: 60, copiedPages: 50, destination: 78, hostBytes: 1e15, nowNs: 5 },
                { kind: "redirect", owner: 0, why: 0, destinationOwner: 0, unit: 0, pages: 4, validPages: 0, copiedPages: 0, destination: null, hostBytes: 2, nowNs: 0 },
            ],
            samples: [{ hostBytes: 11, mediaBytes: 12, owners: [{ hostBytes: 13, copied: 14 }, { hostBytes: 15, copied: 16 }] }],
        });
        const frame = new Frame(encodeFrame(given));
        expect([frame.lane, frame.phase, frame.whole, frame.owners, frame.units, frame.events, frame.samples]).toEqual([3, "ended", true, 2, 1, 2, 1]);
        expect([frame.freeUnits, frame.hostBytes, frame.mediaBytes, frame.filledBytes, frame.nowNs, frame.collections, frame.requests, frame.eventsLeftOut, frame.pagesPerSecond]).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29]);
        expect([frame.ownerHostBytes(0), frame.ownerCopiedOut(0), frame.ownerReceived(0), frame.ownerValidPages(0), frame.ownerUnits(0), frame.ownerReclaimed(0)]).toEqual([2 ** 40 + 1, 7, 8, 9, 10, 2 ** 32 - 1]);
        expect([frame.ownerHostBytes(1), frame.ownerReclaimed(1)]).toEqual([1, 6]);
        expect([frame.unit(0), frame.unitState(0), frame.unitOwner(0), frame.unitGroup(0), frame.unitValid(0), frame.unitWritten(0)]).toEqual([65_535, 3, 1, 513, 2_000_000, 4_000_000_000]);
        expect([frame.event(0), frame.event(1)]).toEqual(given.events);
        expect([frame.sampleHostBytes(0), frame.sampleMediaBytes(0), frame.sampleOwnerHostBytes(0, 1), frame.sampleOwnerCopied(0, 1)]).toEqual([11, 12, 15, 16]);
    });

    it("lies in memory as the contract says", () => {
        const view = new DataView(encodeFrame(parts({ owners: [{ hostBytes: 5, copiedOut: 0, received: 0, validPages: 0, units: 0, reclaimed: 9 }], units: [{ unit: 6, state: 1, owner: 0, group: 2, valid: 3, written: 4 }] })));
        expect(view.byteLength).toBe(88 + 40 + 16);
        expect([view.getUint8(0), view.getUint32(4, true), view.getUint32(8, true), view.getUint32(20, true), view.getFloat64(24, true), view.getFloat64(80, true)]).toEqual([1, 1, 1, 21, 22, 29]);
        expect([view.getFloat64(88, true), view.getUint32(88 + 36, true), view.getUint32(128, true), view.getUint8(132), view.getUint16(134, true), view.getUint32(140, true)]).toEqual([5, 9, 6, 1, 2, 4]);
    });

    it("that cannot be is refused in a sentence", () => {
        const whole = encodeFrame(parts({}));
        const wrong = (change: (view: DataView) => void, cut = 0): ArrayBuffer => {
            const copy = whole.slice(0, whole.byteLength - cut);
            change(new DataView(copy));
            return copy;
        };
        expect(() => new Frame(new ArrayBuffer(40))).toThrow(/40 bytes is too short/);
        expect(() => new Frame(wrong((view) => view.setUint8(0, 2)))).toThrow(/version 2/);
        expect(() => new Frame(wrong((view) => view.setUint8(2, 9)))).toThrow(/unknown phase 9/);
        expect(() => new Frame(wrong(() => {}, -0 + 0))).not.toThrow();
        // Counts from a hostile server do not make the page read beyond the frame.
        for (const at of [4, 8, 12, 16]) expect(() => new Frame(wrong((view) => view.setUint32(at, 0xffff_ffff, true)))).toThrow(FrameError);
        const event = new DataView(encodeFrame(parts({ events: [{ kind: "open", owner: 0, why: 0, destinationOwner: 0, unit: 0, pages: 0, validPages: 0, copiedPages: 0, destination: null, hostBytes: 0, nowNs: 0 }] })));
        event.setUint8(88, 9);
        expect(() => new Frame(event.buffer as ArrayBuffer).event(0)).toThrow(/unknown kind 9/);
    });
});
