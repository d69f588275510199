// Interface of the tile renderers.
//
//   Batch (place and look of the tiles that changed) -> TileRenderer -> canvas
//
// A canvas keeps its content, so a batch has only the changed tiles, and 65,536 units cost no more
// than their changes. A look has 32 bits for colour, state, valid share and written share. Two
// integers are compared to detect a change.
import type { Ground, Rgb } from "./palette.ts";

export interface Colours {
    ground: Ground;
    /** Colours, one for each owner. */
    owners: Rgb[];
}

/** Colour of a tile without a unit. */
export const NO_COLOUR = 255;
/** State of an empty position. */
export const EMPTY = 7;
/** Maximum tiles of a batch. */
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

/**
 * Look of a unit. `valid` and `written` are shares from 0 to 1. Shares above 0 are never drawn as
 * 0.
 */
export function look(colour: number, state: number, valid: number, written: number): number {
    const eighth = (share: number) => Math.min(255, Math.ceil(share * 255));
    return (colour | (state << 8) | (eighth(valid) << 16) | (eighth(written) << 24)) >>> 0;
}

export interface TileRenderer {
    readonly kind: string;
    /** Sets the size of the canvas and clears it. */
    begin(width: number, height: number, tile: number, colours: Colours): void;
    draw(batch: Batch): void;
    /** Called after the last batch of a picture. */
    show(): void;
    end(): void;
}
