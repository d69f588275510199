import { describe, expect, it } from "vitest";
import { headline } from "../src/state/headline.ts";
import { LaneState } from "../src/state/lane.ts";
import { cumulative, merge, wafSince, windowed, type Points } from "../src/state/series.ts";
import { Frame, encodeFrame } from "../src/wire/frame.ts";
import { lane, parts } from "./sample.ts";

const points = (rows: [number, number][]): Points => ({ length: rows.length, at: (index) => rows[index]?.[0] ?? 0, host: (index) => rows[index]?.[0] ?? 0, media: (index) => rows[index]?.[1] ?? 0 });
const ROWS: [number, number][] = [[100, 100], [200, 200], [300, 350], [400, 500], [500, 800]];

describe("write amplification over the written volume", () => {
    it("since the beginning", () => {
        expect(cumulative(points(ROWS), 1000)).toEqual({ x: [0.1, 0.2, 0.3, 0.4, 0.5], y: [1, 1, 350 / 300, 1.25, 1.6] });
    });
    it("of the last window, and of what there is before a window is full", () => {
        expect(windowed(points(ROWS), 1000, 200).y).toEqual([1, 1, 1.25, 1.5, 2.25]);
        expect(windowed(points([[0, 0], ...ROWS]), 1000, 200).y).toEqual([1, 1, 1.25, 1.5, 2.25]);
    });
    it("of a time that nobody watched is its mean, and begins anew behind it", () => {
        // No page was connected before 300 and between 400 and 900. The curve has no samples within
        // a gap.
        const rows: [number, number][] = [[250, 250], [300, 450], [350, 550], [400, 600], [900, 2100], [950, 2150]];
        const gaps = [{ from: 0, to: 300 }, { from: 400, to: 900 }];
        const { x, y } = windowed(points(rows), 1000, 200, gaps);
        expect(x.map((at) => Number(at.toFixed(4)))).toEqual([0, 0.3, 0.35, 0.4, 0.4, 0.9, 0.95]);
        expect(x).toEqual([...x].sort((a, b) => a - b));
        expect(y).toEqual([1.5, 1.5, 2, 1.5, 3, 3, 1]);
        // Thinning may remove the samples at both ends of a gap.
        expect(windowed(points([[380, 580], [920, 2120]]), 1000, 200, [{ from: 400, to: 900 }]).y).toEqual([580 / 380, 1540 / 540, 1540 / 540]);
    });
    it("puts several on one axis", () => {
        expect(merge([{ x: [1, 3], y: [5, 6] }, { x: [2, 3], y: [7, null] }])).toEqual({ x: [1, 2, 3], ys: [[5, null, 6], [null, 7, null]] });
    });
});

function ran(name: string, media: number, more: object = {}): LaneState {
    const state = new LaneState(lane({ name, ...more }));
    const samples = [{ hostBytes: 500, mediaBytes: 500, owners: [] }];
    state.apply(new Frame(encodeFrame(parts({ hostBytes: 1000, mediaBytes: media, samples }))));
    return state;
}

describe("the headline", () => {
    it("of one lane is its write amplification", () => {
        expect(headline([ran("FDP", 1250)], [])?.sentence).toBe("The drive wrote 1.250 bytes to flash for each byte of the host.");
    });
    it("of several is the difference between the least and the most", () => {
        const said = headline([ran("NoFDP", 1500), ran("Mixed", 1400), ran("FDP", 1200)], []);
        expect(said).toEqual({ figure: "−20\u00a0%", sentence: "FDP writes 20\u00a0% less to the flash than NoFDP so far (WAF 1.200 against 1.500)." });
    });
    it("of a fork is the difference since then", () => {
        const fork = ran("OP 28 %", 1100, { of: 0, forked: "here" });
        expect(wafSince(fork, 500)).toBe(1.2);
        const said = headline([ran("as it is", 1500), fork], [{ of: 0, name: "OP 28 %", at_host_bytes: 500, set: {} }]);
        expect(said?.sentence).toBe("OP 28 % writes 40\u00a0% less to the flash than as it is since the fork (WAF 1.200 against 2.000).");
    });
    it("says so where there is nothing to compare", () => {
        expect(headline([], [])).toBeNull();
        expect(headline([new LaneState(lane())], [])?.sentence).toBe("The run has written no data yet. Press play.");
        expect(headline([ran("a", 1200), ran("b", 1200)], [])?.figure).toBe("±0\u00a0%");
    });
});
