import { describe, expect, it } from "vitest";
import { Painter } from "../src/map/painter.ts";
import { LIGHT, rgb } from "../src/map/palette.ts";
import type { Grouping } from "../src/map/layout.ts";
import { LaneState } from "../src/state/lane.ts";
import { Frame, encodeFrame, type FrameParts } from "../src/wire/frame.ts";
import { lane, parts } from "./sample.ts";

/** Canvas without a display, which keeps its pixels. */
class FakeCanvas {
    width = 300;
    height = 150;
    pixels = new Uint32Array(0);
    getContext(): unknown {
        return new Proxy(this, {
            get: (canvas, name) => {
                if (name === "canvas") return canvas;
                if (name === "createImageData") {
                    return (width: number, height: number) => {
                        canvas.pixels = new Uint32Array(width * height);
                        return { data: new Uint8ClampedArray(canvas.pixels.buffer) };
                    };
                }
                return () => {};
            },
            set: () => true,
        });
    }
}

// The test browser has no WebGL.
(globalThis as { document?: unknown }).document = { createElement: () => ({ getContext: () => null }) };

const UNITS = 700;
const PAPER = ((255 << 24) | (rgb(LIGHT.paper)[2] << 16) | (rgb(LIGHT.paper)[1] << 8) | rgb(LIGHT.paper)[0]) >>> 0;

function begin(grouping: Grouping) {
    const state = new LaneState(lane({ units: UNITS, superblocks: UNITS }));
    const tiles = new FakeCanvas();
    const above = new FakeCanvas();
    const painter = new Painter(tiles as unknown as HTMLCanvasElement, above as unknown as HTMLCanvasElement, state, { grouping, ground: LIGHT, moves: true });
    const arrange = () => painter.arrange(333, 400, 1, { grouping, ground: LIGHT, moves: true });
    arrange();
    return { state, tiles, painter, arrange };
}

/** Each unit has one tile. No tile overlaps another, and no old tile remains. */
function check({ tiles, painter }: ReturnType<typeof begin>): void {
    const size = painter.layout?.shape.size ?? 0;
    let covered = 0;
    for (const pixel of tiles.pixels) if (pixel !== PAPER) covered += 1;
    expect(covered).toBe(UNITS * size * size);
}

describe("a picture", () => {
    it.each(["handle", "group", "physical"] as Grouping[])("has one tile for each unit, %s, whatever changes", (grouping) => {
        const drawn = begin(grouping);
        check(drawn);
        let random = 99;
        const draw = (below: number) => {
            random = (random * 1103515245 + 12345) & 0x7fffffff;
            return Math.floor(random / 65536) % below;
        };
        for (let picture = 0; picture < 300; picture += 1) {
            const many = picture % 40 === 7 ? 400 : 12;
            const units: FrameParts["units"] = Array.from({ length: many }, () => {
                const state = draw(4);
                return { unit: draw(UNITS), state, owner: state === 0 ? 255 : draw(3), group: draw(2), valid: draw(101), written: 100 };
            });
            const held = { hostBytes: 1, copiedOut: 0, received: 1, validPages: 0, units: 1, reclaimed: 0 };
            drawn.state.apply(new Frame(encodeFrame(parts({ units, owners: [held, held, held], whole: picture === 150 }))));
            if (drawn.painter.isOutdated) drawn.arrange();
            drawn.painter.picture(picture * 33);
            // As on the page, an outdated layout is replaced before the next picture.
            if (drawn.painter.isOutdated) drawn.arrange();
            check(drawn);
        }
    });
});
