// Tiles on a 2D canvas, for browsers without WebGL2 or with WebGL2 in software, where the 2D canvas
// is faster.
//
//   Batch -> pixels in memory -> the rows that changed -> canvas
//
// Tiles are written to an array of pixels, with a store for each pixel. Changed rows are copied to
// the canvas at once, because canvas calls for each tile would cost more than all of its pixels.
import { CLOSED, FREE, OPEN_FOR_HOST } from "../wire/frame.ts";
import { DEAD_SHARE, mix, rgb, type Rgb } from "./palette.ts";
import { EMPTY, NO_COLOUR, type Batch, type Colours, type TileRenderer } from "./renderer.ts";

const DETAIL_FROM = 6;
/** Number of shades between invalid and valid for small tiles. */
const SHADES = 64;

/** A colour as a pixel in memory, little endian like all machines with a browser. */
function pixel([r, g, b]: Rgb): number {
    return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}

export class Canvas2dRenderer implements TileRenderer {
    readonly kind = "canvas";
    private readonly canvas: HTMLCanvasElement;
    private readonly context: CanvasRenderingContext2D;
    private tile = 1;
    private width = 1;
    private image: ImageData | null = null;
    private pixels = new Uint32Array(0);
    private paper = 0;
    private free = 0;
    private ink = 0;
    private solid = new Uint32Array(0);
    private dead = new Uint32Array(0);
    /** Shades of each owner, closed tiles before open ones. */
    private shades = new Uint32Array(0);
    /** Changed rows that are not on the canvas yet. */
    private top = Number.MAX_SAFE_INTEGER;
    private bottom = 0;

    constructor(canvas: HTMLCanvasElement) {
        const context = canvas.getContext("2d", { alpha: false });
        if (context === null) throw new Error("This browser has no canvas to draw on.");
        this.canvas = canvas;
        this.context = context;
    }

    begin(width: number, height: number, tile: number, colours: Colours): void {
        if (this.image === null || this.canvas.width !== width || this.canvas.height !== height) {
            this.canvas.width = width;
            this.canvas.height = height;
            this.image = this.context.createImageData(width, height);
            this.pixels = new Uint32Array(this.image.data.buffer);
        }
        this.width = width;
        this.tile = tile;
        this.mixColours(colours);
        this.pixels.fill(this.paper);
        this.context.putImageData(this.image, 0, 0);
    }

    private mixColours({ ground, owners }: Colours): void {
        const paper = rgb(ground.paper);
        this.paper = pixel(paper);
        this.free = pixel(rgb(ground.free));
        this.ink = pixel(rgb(ground.ink));
        this.solid = Uint32Array.from(owners, pixel);
        this.dead = Uint32Array.from(owners, (owner) => pixel(mix(paper, owner, DEAD_SHARE)));
        this.shades = new Uint32Array(owners.length * 2 * SHADES);
        owners.forEach((owner, index) => {
            for (let shade = 0; shade < SHADES; shade += 1) {
                const closed = mix(mix(paper, owner, DEAD_SHARE), owner, shade / (SHADES - 1));
                this.shades[(index * 2 + 0) * SHADES + shade] = pixel(closed);
                this.shades[(index * 2 + 1) * SHADES + shade] = pixel(mix(closed, rgb(ground.ink), 0.45));
            }
        });
    }

    private fill(x: number, y: number, width: number, height: number, colour: number): void {
        for (let row = y; row < y + height; row += 1) {
            const from = row * this.width + x;
            for (let at = from; at < from + width; at += 1) this.pixels[at] = colour;
        }
    }

    draw(batch: Batch): void {
        const { tile } = this;
        for (let i = 0; i < batch.count; i += 1) {
            const x = batch.places[i * 4] as number;
            const y = batch.places[i * 4 + 1] as number;
            const colour = batch.looks[i * 8 + 4] as number;
            const state = batch.looks[i * 8 + 5] as number;
            const valid = batch.looks[i * 8 + 6] as number;
            const written = batch.looks[i * 8 + 7] as number;
            if (y < this.top) this.top = y;
            if (y + tile > this.bottom) this.bottom = y + tile;
            if (state === EMPTY) this.fill(x, y, tile, tile, this.paper);
            else if (state === FREE || colour === NO_COLOUR) this.fill(x, y, tile, tile, this.free);
            else if (tile < DETAIL_FROM) this.fill(x, y, tile, tile, this.shades[(colour * 2 + (state === CLOSED ? 0 : 1)) * SHADES + (valid >> 2)] as number);
            else this.detail(x, y, colour, state, valid, written);
        }
    }

    show(): void {
        if (this.bottom > this.top && this.image !== null) this.context.putImageData(this.image, 0, 0, 0, this.top, this.width, this.bottom - this.top);
        this.top = Number.MAX_SAFE_INTEGER;
        this.bottom = 0;
    }

    private detail(x: number, y: number, colour: number, state: number, valid: number, written: number): void {
        const { tile, ink } = this;
        const validRows = Math.round((valid / 255) * tile);
        const writtenRows = Math.max(validRows, Math.round((written / 255) * tile));
        this.fill(x, y, tile, tile - writtenRows, this.free);
        this.fill(x, y + tile - writtenRows, tile, writtenRows - validRows, this.dead[colour] as number);
        this.fill(x, y + tile - validRows, tile, validRows, this.solid[colour] as number);
        if (state === CLOSED) return;
        // A unit that is open for the host has a frame. A unit that is open for collection has
        // corners.
        const border = tile >= 12 ? 2 : 1;
        const arm = state === OPEN_FOR_HOST ? tile : Math.max(2, Math.round(tile / 3));
        for (const edge of [0, tile - border]) {
            for (const from of [0, tile - arm]) {
                this.fill(x + from, y + edge, arm, border, ink);
                this.fill(x + edge, y + from, border, arm, ink);
            }
        }
    }

    end(): void {
        this.image = null;
    }
}
