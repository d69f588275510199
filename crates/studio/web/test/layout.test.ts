import { describe, expect, it } from "vitest";
import { Layout, choosePitch, handleKeys, sizeOf, SMALLEST_PITCH } from "../src/map/layout.ts";
import { NO_OWNER } from "../src/wire/frame.ts";

/** No two tiles overlap, all are inside the canvas, and each is found at its position. */
function check(layout: Layout, units: number): void {
    const seen = new Set<string>();
    for (let unit = 0; unit < units; unit += 1) {
        const [x, y] = [layout.x[unit] as number, layout.y[unit] as number];
        expect(seen.has(`${x} ${y}`)).toBe(false);
        seen.add(`${x} ${y}`);
        expect(x + layout.shape.size).toBeLessThanOrEqual(layout.shape.width);
        expect(y + layout.shape.size).toBeLessThanOrEqual(layout.shape.height);
        expect(layout.unitAt(x, y)).toBe(unit);
    }
}

describe("the layout of tiles", () => {
    it("chooses the largest tiles that fit", () => {
        for (const [counts, width, height] of [[[1000], 800, 420], [[65_536], 1232, 620], [[65_536], 358, 900], [[3, 900, 97], 400, 400]] as [number[], number, number][]) {
            const pitch = choosePitch(counts, width, height, 24, 1, 1);
            const needs = (at: number) => counts.reduce((sum, count) => sum + 24 + (Math.ceil(count / Math.floor(width / at)) + 1) * at, 0);
            if (pitch > SMALLEST_PITCH) expect(needs(pitch)).toBeLessThanOrEqual(height);
            if (pitch < 26) expect(needs(pitch + 1)).toBeGreaterThan(height);
        }
        expect([sizeOf(2), sizeOf(4), sizeOf(5), sizeOf(16)]).toEqual([2, 4, 4, 14]);
    });

    it("keeps places in physical order and by reclaim group", () => {
        const physical = new Layout("physical", 1000, [0], () => 0, { pitch: 10, width: 333 }, 0);
        check(physical, 1000);
        expect([physical.x[33], physical.y[33]]).toEqual([0, 10]);
        const groups = new Layout("group", 1000, [0, 1, 2, 3], (unit) => unit % 4, { pitch: 10, width: 333 }, 24);
        check(groups, 1000);
        expect(groups.regions.map((region) => region.tilesTop - region.top)).toEqual([24, 24, 24, 24]);
    });

    it("moves units between owners without overlap, over thousands of moves", () => {
        const units = 500;
        const owners = new Uint8Array(units).fill(NO_OWNER);
        const layout = new Layout("handle", units, handleKeys(4), (unit) => owners[unit] as number, { pitch: 9, width: 271 }, 24);
        let random = 12345;
        const draw = (below: number) => {
            random = (random * 1103515245 + 12345) & 0x7fffffff;
            return random % below;
        };
        let dealt = 0;
        for (let move = 0; move < 6000; move += 1) {
            const unit = draw(units);
            owners[unit] = owners[unit] === NO_OWNER ? draw(4) : NO_OWNER;
            const went = layout.move(unit, owners[unit] as number);
            expect(went).not.toBe("stays");
            if (went === "full") {
                layout.deal((of) => owners[of] as number);
                dealt += 1;
            }
            if (move % 500 === 0) check(layout, units);
        }
        check(layout, units);
        // Assigning all positions again is rare.
        expect(dealt).toBeGreaterThan(0);
        expect(dealt).toBeLessThan(120);
    });

    it("goes from unit to unit with the arrow keys, and stays at the edge", () => {
        const layout = new Layout("physical", 100, [0], () => 0, { pitch: 10, width: 100 }, 0);
        expect([layout.beside(0, 1, 0), layout.beside(0, 0, 1), layout.beside(0, -1, 0), layout.beside(95, 0, 1), layout.first()]).toEqual([1, 10, 0, 95, 0]);
        expect([layout.unitAt(-1, 0), layout.unitAt(100, 5), layout.unitAt(5, 1000)]).toEqual([null, null, null]);
    });
});
