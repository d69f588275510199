// One way to draw tiles, for whatever can draw them.
//
//   Batch (place and look of the tiles that changed) -> TileRenderer -> canvas
//
// A canvas keeps what was drawn: a batch is only what has become different, so 65,536 units cost what they change. A look is 32 bits:
// colour, state, share that is valid and share that is written, so that "has it changed" is a comparison of two integers.
import type { Ground, Rgb } from "./palette.ts";

export interface Colours {
    ground: Ground;
    /** Of each owner. */
    owners: Rgb[];
}

/** Colour of a tile that is no unit's. */
export const NO_COLOUR = 255;
/** State of a place that holds no tile any more. */
export const EMPTY = 7;
/** Tiles that one batch holds. */
export const BATCH = 4096;
const TILE_BYTES = 8;

export class Batch {
    readonly buffer = new ArrayBuffer(BATCH * TILE_BYTES);
    readonly places = new Uint16Array(this.buffer);
    readonly looks = new Uint8Array(this.buffer);
    count = 0;

    add(x: number, y: number, look: number): void {
        const at = this.count;
        this.places[at * 4] = x;
        this.places[at * 4 + 1] = y;
        this.looks[at * 8 + 4] = look & 255;
        this.looks[at * 8 + 5] = (look >>> 8) & 255;
        this.looks[at * 8 + 6] = (look >>> 16) & 255;
        this.looks[at * 8 + 7] = look >>> 24;
        this.count = at + 1;
    }
    get isFull(): boolean {
        return this.count === BATCH;
    }
}

/** The look of a unit. `valid` and `written` are shares from 0 to 1; what is not 0 is not drawn as 0. */
export function look(colour: number, state: number, valid: number, written: number): number {
    const eighth = (share: number) => Math.min(255, Math.ceil(share * 255));
    return (colour | (state << 8) | (eighth(valid) << 16) | (eighth(written) << 24)) >>> 0;
}

export interface TileRenderer {
    readonly kind: string;
    /** Makes the canvas so large, and empty. */
    begin(width: number, height: number, tile: number, colours: Colours): void;
    draw(batch: Batch): void;
    /** All batches of a picture were drawn. */
    show(): void;
    end(): void;
}
