import { describe, expect, it } from "vitest";
import { EVENTS_KEPT, LaneState } from "../src/state/lane.ts";
import { Frame, encodeFrame, type FrameEvent, type FrameParts } from "../src/wire/frame.ts";
import { lane, parts } from "./sample.ts";

const apply = (state: LaneState, more: Partial<FrameParts>) => state.apply(new Frame(encodeFrame(parts(more))));
const opened = (unit: number, pages: number): FrameEvent => ({ kind: "open", owner: 0, why: 0, destinationOwner: 0, unit, pages, validPages: 0, copiedPages: 0, destination: null, hostBytes: 0, nowNs: 0 });
const owner = (more: object) => ({ hostBytes: 0, copiedOut: 0, received: 0, validPages: 0, units: 0, reclaimed: 0, ...more });

describe("a lane", () => {
    it("adds up what changed and says which units that were, once each", () => {
        const state = new LaneState(lane());
        state.taken();
        apply(state, { units: [{ unit: 3, state: 1, owner: 0, group: 0, valid: 5, written: 6 }] });
        apply(state, { units: [{ unit: 3, state: 3, owner: 0, group: 0, valid: 4, written: 100 }, { unit: 7, state: 1, owner: 1, group: 1, valid: 1, written: 1 }] });
        expect([...state.changed.slice(0, state.changedCount)]).toEqual([3, 7]);
        expect([state.state[3], state.valid[3], state.written[3], state.owner[7], state.group[7]]).toEqual([3, 4, 100, 1, 1]);
        state.taken();
        expect(state.changedCount).toBe(0);
        apply(state, { units: [{ unit: 3, state: 0, owner: 0, group: 0, valid: 0, written: 0 }] });
        expect([state.changedCount, state.owner[3]]).toEqual([1, 255]);
    });

    it("forgets all before a whole frame", () => {
        const state = new LaneState(lane());
        apply(state, { units: [{ unit: 3, state: 3, owner: 0, group: 0, valid: 5, written: 6 }], events: [opened(3, 100)], samples: [{ hostBytes: 1, mediaBytes: 1, owners: [] }] });
        const generation = state.generation;
        apply(state, { whole: true, units: [{ unit: 4, state: 3, owner: 1, group: 0, valid: 9, written: 9 }], samples: [{ hostBytes: 7, mediaBytes: 8, owners: [] }] });
        expect([state.state[3], state.owner[3], state.valid[4], state.events.length, state.sampleHost.length, state.sampleHost.at(0)]).toEqual([0, 255, 9, 0, 1, 7]);
        expect(state.generation).toBe(generation + 1);
        expect(state.changedCount).toBe(12);
    });

    it("leaves out rows of units that it does not have", () => {
        const state = new LaneState(lane());
        apply(state, { units: [{ unit: 12, state: 3, owner: 0, group: 0, valid: 5, written: 6 }, { unit: 2 ** 32 - 1, state: 3, owner: 0, group: 0, valid: 5, written: 6 }] });
        expect(Math.max(...state.valid)).toBe(0);
    });

    it("knows the write amplification of the run and of each handle", () => {
        const state = new LaneState(lane());
        expect([state.waf, state.ownerWaf(0)]).toEqual([null, null]);
        apply(state, { hostBytes: 4096 * 100, mediaBytes: 4096 * 125, owners: [owner({ hostBytes: 4096 * 80, copiedOut: 20 }), owner({ hostBytes: 4096 * 20 }), owner({ copiedOut: 5 })] });
        expect([state.waf, state.ownerWaf(0), state.ownerWaf(1), state.ownerWaf(2)]).toEqual([1.25, 1.25, 1, null]);
    });

    it("keeps so many events and no more, the newest", () => {
        const state = new LaneState(lane());
        for (let round = 0; round < 5; round += 1) apply(state, { events: Array.from({ length: 4000 }, (_, index) => opened(index % 12, 100)) });
        expect(state.events.length).toBeGreaterThanOrEqual(EVENTS_KEPT);
        expect(state.events.length).toBeLessThanOrEqual(2 * EVENTS_KEPT);
        expect(state.events.at(-1)?.number).toBe(19_999);
    });

    it("shows a unit of several slices over all of them, and takes them back", () => {
        // Superblocks have four slices of 100 pages. Unit 4 is a whole superblock, and unit 8 is a
        // slice.
        const state = new LaneState(lane({ superblocks: 3 }));
        apply(state, { events: [opened(4, 400)], units: [{ unit: 4, state: 1, owner: 0, group: 0, valid: 10, written: 10 }, { unit: 8, state: 1, owner: 1, group: 0, valid: 1, written: 1 }] });
        expect([4, 5, 6, 7, 8, 9].map((slice) => state.unitOf(slice))).toEqual([4, 4, 4, 4, 8, 9]);
        expect([state.pagesOf(4), state.pagesOf(6), state.pagesOf(8)]).toEqual([400, 400, 100]);
        state.taken();
        apply(state, { units: [{ unit: 4, state: 1, owner: 0, group: 0, valid: 30, written: 30 }] });
        expect([...state.changed.slice(0, state.changedCount)].sort()).toEqual([4, 5, 6, 7]);
        apply(state, { units: [{ unit: 4, state: 0, owner: 255, group: 0, valid: 0, written: 0 }, { unit: 5, state: 1, owner: 1, group: 0, valid: 1, written: 1 }] });
        expect([4, 5, 6, 7].map((slice) => state.unitOf(slice))).toEqual([4, 5, 6, 7]);
        // A page that connects later did not receive the opening. The number of written pages is
        // its lower bound.
        const late = new LaneState(lane({ superblocks: 3 }));
        apply(late, { whole: true, units: [{ unit: 4, state: 3, owner: 0, group: 0, valid: 10, written: 400 }] });
        expect([4, 5, 7].map((slice) => late.unitOf(slice))).toEqual([4, 4, 4]);
    });
});
