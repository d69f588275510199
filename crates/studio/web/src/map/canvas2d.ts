// Tiles on a 2D canvas: for browsers without WebGL2, and those that have lost it.
import { CLOSED, FREE, OPEN_FOR_HOST } from "../wire/frame.ts";
import { DEAD_SHARE, css, mix, rgb, type Rgb } from "./palette.ts";
import { EMPTY, NO_COLOUR, type Batch, type Colours, type TileRenderer } from "./renderer.ts";

const DETAIL_FROM = 6;

export class Canvas2dRenderer implements TileRenderer {
    readonly kind = "canvas";
    private readonly canvas: HTMLCanvasElement;
    private readonly context: CanvasRenderingContext2D;
    private tile = 1;
    private colours: Colours | null = null;
    private solid: string[] = [];
    private dead: string[] = [];
    /** Colours of tiles without detail, made once each: owner, share valid in 16 steps. */
    private blends = new Map<number, string>();

    constructor(canvas: HTMLCanvasElement) {
        const context = canvas.getContext("2d", { alpha: false });
        if (context === null) throw new Error("This browser has no canvas to draw on.");
        this.canvas = canvas;
        this.context = context;
    }

    begin(width: number, height: number, tile: number, colours: Colours): void {
        this.canvas.width = width;
        this.canvas.height = height;
        this.tile = tile;
        this.colours = colours;
        this.solid = colours.owners.map(css);
        this.dead = colours.owners.map((owner) => css(mix(rgb(colours.ground.paper), owner, DEAD_SHARE)));
        this.blends.clear();
        this.context.fillStyle = colours.ground.paper;
        this.context.fillRect(0, 0, width, height);
    }

    private blend(colour: number, valid: number, isOpen: boolean): string {
        const key = (colour << 8) | (valid & 0xf0) | (isOpen ? 1 : 0);
        let made = this.blends.get(key);
        if (made === undefined) {
            const { ground, owners } = this.colours as Colours;
            const owner = owners[colour] as Rgb;
            const closed = mix(mix(rgb(ground.paper), owner, DEAD_SHARE), owner, valid / 255);
            made = css(isOpen ? mix(closed, rgb(ground.ink), 0.45) : closed);
            this.blends.set(key, made);
        }
        return made;
    }

    draw(batch: Batch): void {
        const { context, tile } = this;
        const { ground } = this.colours as Colours;
        for (let i = 0; i < batch.count; i += 1) {
            const x = batch.places[i * 4] as number;
            const y = batch.places[i * 4 + 1] as number;
            const colour = batch.looks[i * 8 + 4] as number;
            const state = batch.looks[i * 8 + 5] as number;
            const valid = batch.looks[i * 8 + 6] as number;
            const written = batch.looks[i * 8 + 7] as number;
            if (state === EMPTY || state === FREE || colour === NO_COLOUR) {
                context.fillStyle = state === EMPTY ? ground.paper : ground.free;
                context.fillRect(x, y, tile, tile);
            } else if (tile < DETAIL_FROM) {
                context.fillStyle = this.blend(colour, valid, state !== CLOSED);
                context.fillRect(x, y, tile, tile);
            } else {
                this.detail(x, y, colour, state, valid, written);
            }
        }
    }

    private detail(x: number, y: number, colour: number, state: number, valid: number, written: number): void {
        const { context, tile } = this;
        const { ground } = this.colours as Colours;
        const validRows = Math.round((valid / 255) * tile);
        const writtenRows = Math.max(validRows, Math.round((written / 255) * tile));
        context.fillStyle = ground.free;
        context.fillRect(x, y, tile, tile - writtenRows);
        context.fillStyle = this.dead[colour] as string;
        context.fillRect(x, y + tile - writtenRows, tile, writtenRows - validRows);
        context.fillStyle = this.solid[colour] as string;
        context.fillRect(x, y + tile - validRows, tile, validRows);
        if (state === CLOSED) return;
        const border = tile >= 12 ? 2 : 1;
        context.fillStyle = ground.ink;
        if (state === OPEN_FOR_HOST) {
            context.fillRect(x, y, tile, border);
            context.fillRect(x, y, border, tile);
            context.fillRect(x + tile - border, y, border, tile);
        } else {
            // Open for collection: corners only.
            const arm = Math.max(2, Math.round(tile / 3));
            for (const [left, top] of [
                [x, y],
                [x + tile - arm, y],
                [x, y + tile - border],
                [x + tile - arm, y + tile - border],
            ] as const) {
                context.fillRect(left, top, arm, border);
            }
            context.fillRect(x, y, border, arm);
            context.fillRect(x + tile - border, y, border, arm);
            context.fillRect(x, y + tile - arm, border, arm);
            context.fillRect(x + tile - border, y + tile - arm, border, arm);
            return;
        }
        context.fillRect(x, y + tile - border, tile, border);
    }

    end(): void {
        this.blends.clear();
    }
}
