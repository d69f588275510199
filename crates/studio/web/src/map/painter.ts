// Draws a lane on a canvas, and movements on a canvas above it.
//
//   LaneState.changed -> look of each unit -> Layout -> Batch -> TileRenderer     (the tiles)
//   LaneState.moves   -> flights, marks of victims            -> 2D canvas        (above them)
//
// Drawing is separate from state. It only reads a lane and clears its list of changes. A picture
// allocates no memory.
import { FREE, NO_OWNER, type FrameEvent } from "../wire/frame.ts";
import type { LaneState } from "../state/lane.ts";
import { meter } from "../state/meter.ts";
import { Canvas2dRenderer } from "./canvas2d.ts";
import { Layout, choosePitch, handleKeys, type Grouping } from "./layout.ts";
import { OKABE_ITO, ownerColours, rgb, css, type Ground } from "./palette.ts";
import { Batch, EMPTY, NO_COLOUR, look, type Colours, type TileRenderer } from "./renderer.ts";
import { WebglRenderer, isWebglFast } from "./webgl.ts";

/** Maximum simultaneous movements. More would blur. */
const FLIGHTS = 28;
const FLIGHT_MS = 620;
const MARK_MS = 420;

/**
 * Minimum height of a region by handle, for its heading, a row of visible tiles, and a spare row.
 */
const LEAST_REGION_HEIGHT = 24 + 2 * 10;

interface Flight {
    begun: number;
    colour: string;
    fromX: number;
    fromY: number;
    toX: number;
    toY: number;
    /** Copies to another position. Without copies, only the victim is marked. */
    flies: boolean;
    size: number;
}

export interface PainterOptions {
    grouping: Grouping;
    ground: Ground;
    /** True if animations are allowed by the user. */
    moves: boolean;
}

export class Painter {
    layout: Layout | null = null;
    focus: number | null = null;
    readonly kind: string;
    private readonly tiles: HTMLCanvasElement;
    private readonly above: CanvasRenderingContext2D;
    private renderer: TileRenderer;
    private readonly batch = new Batch();
    private drawnLooks = new Uint32Array(0);
    private flights: Flight[] = [];
    private isAboveClean = true;
    private options: PainterOptions;
    private generation = -1;
    private state: LaneState;
    private heading = 22;
    private scale = 1;
    private colours: string[] = [];
    /** True to use the palette for many handles. */
    private isManyHandles = false;

    constructor(tiles: HTMLCanvasElement, above: HTMLCanvasElement, state: LaneState, options: PainterOptions) {
        const context = above.getContext("2d");
        if (context === null) throw new Error("This browser has no canvas to draw on.");
        this.tiles = tiles;
        this.above = context;
        this.state = state;
        this.options = options;
        this.renderer = rendererFor(tiles);
        this.kind = this.renderer.kind;
        meter.renderer = this.kind;
    }

    /**
     * Computes the layout for this many CSS pixels, at `scale` canvas pixels each. Returns the
     * height in CSS pixels.
     */
    arrange(width: number, mostHeight: number, scale: number, options: PainterOptions): number {
        this.options = options;
        this.scale = scale;
        const { state } = this;
        const lane = state.lane;
        const pixels = Math.max(1, Math.floor(width * scale));
        this.heading = options.grouping === "physical" ? 0 : Math.round(24 * scale);
        const keys = this.keys();
        const byHandle = options.grouping === "handle";
        // With very many handles, headings would take the whole height. Such a map is taller and
        // scrolls.
        const room = Math.max(mostHeight, keys.length * LEAST_REGION_HEIGHT) * scale;
        const pitch = choosePitch(this.counts(keys), pixels, room, this.heading, byHandle ? 1 : 0, scale);
        this.layout = new Layout(options.grouping, lane.units, keys, this.keyOf, { pitch, width: pixels }, this.heading);
        // By handle, regions grow and shrink within a fixed height, so that the content below the
        // map does not move.
        const height = byHandle ? Math.max(Math.floor(mostHeight * scale), this.layout.shape.height) : this.layout.shape.height;
        const used = usedHandles(state);
        this.isManyHandles = used > OKABE_ITO.length;
        this.colours = ownerColours(lane.owners, used);
        this.above.canvas.width = pixels;
        this.above.canvas.height = height;
        this.renderer.begin(pixels, Math.max(1, height), this.layout.shape.size, this.rendererColours());
        this.drawnLooks = new Uint32Array(lane.units).fill(0xffff_ffff);
        this.generation = state.generation;
        this.flights = [];
        this.isAboveClean = false;
        this.drawAll();
        return height / scale;
    }

    private rendererColours(): Colours {
        return { ground: this.options.ground, owners: this.colours.map(rgb) };
    }

    private keys(): number[] {
        const { lane } = this.state;
        if (this.options.grouping === "physical") return [0];
        if (this.options.grouping === "group") return [...Array<unknown>(Math.max(1, lane.groups)).keys()];
        return handleKeys(lane.owners.length).filter((key) => key === NO_OWNER || this.isOwnerShown(key));
    }

    /** Handles that hold no data and never wrote get no region. */
    private isOwnerShown(owner: number): boolean {
        const totals = this.state.owners[owner];
        return totals !== undefined && (totals.units > 0 || totals.hostBytes > 0 || totals.received > 0);
    }

    private counts(keys: number[]): number[] {
        const counts = new Map(keys.map((key) => [key, 0]));
        for (let unit = 0; unit < this.state.lane.units; unit += 1) {
            const key = this.keyOf(unit);
            counts.set(key, (counts.get(key) ?? 0) + 1);
        }
        return [...counts.values()];
    }

    private readonly keyOf = (unit: number): number => {
        if (this.options.grouping === "handle") return this.state.owner[this.state.unitOf(unit)] as number;
        return this.options.grouping === "group" ? (this.state.group[unit] as number) : 0;
    };

    private lookOf(slice: number): number {
        const { state } = this;
        const unit = state.unitOf(slice);
        const condition = state.state[unit] as number;
        if (condition === FREE) return look(NO_COLOUR, FREE, 0, 0);
        const pages = state.pagesOf(unit);
        return look(state.owner[unit] as number, condition, (state.valid[unit] as number) / pages, (state.written[unit] as number) / pages);
    }

    private put(x: number, y: number, what: number): void {
        this.batch.add(x, y, what);
        if (this.batch.isFull) this.flush();
    }

    private flush(): void {
        if (this.batch.count > 0) this.renderer.draw(this.batch);
        this.batch.count = 0;
    }

    private drawAll(): void {
        const { layout } = this;
        if (layout === null) return;
        for (let unit = 0; unit < this.state.lane.units; unit += 1) {
            const now = this.lookOf(unit);
            this.drawnLooks[unit] = now;
            this.put(layout.x[unit] as number, layout.y[unit] as number, now);
        }
        this.flush();
        this.renderer.show();
        this.state.taken();
    }

    /**
     * True if a new layout is needed, because a handle has no region or the regions exceed the
     * canvas.
     */
    get isOutdated(): boolean {
        if (this.layout === null || usedHandles(this.state) > OKABE_ITO.length !== this.isManyHandles) return true;
        // Regions that need more rows than the canvas has get a new layout with smaller tiles.
        if (this.layout.shape.height > this.tiles.height) return true;
        if (this.options.grouping !== "handle") return false;
        return this.keys().length !== this.layout.regions.length;
    }

    /** Draws the changes. Returns true while an animation runs. */
    picture(now: number): boolean {
        const begun = performance.now();
        const { layout, state } = this;
        if (layout === null) return false;
        if (this.generation !== state.generation) {
            this.generation = state.generation;
            this.flights = [];
            this.redeal();
        }
        const drawn = this.drawChanged(layout);
        for (const move of state.moves) this.begin(move, now);
        state.moves.length = 0;
        const isMoving = this.drawAbove(now);
        meter.picture(performance.now() - begun, drawn);
        return isMoving;
    }

    private drawChanged(layout: Layout): number {
        const { state } = this;
        const mayMove = this.options.grouping !== "physical";
        let drawn = 0;
        for (let i = 0; i < state.changedCount; i += 1) {
            const unit = state.changed[i] as number;
            if (mayMove) {
                const x = layout.x[unit] as number;
                const y = layout.y[unit] as number;
                const went = layout.move(unit, this.keyOf(unit));
                if (went === "full") {
                    this.redeal();
                    return drawn + state.lane.units;
                }
                if (went === "moved") {
                    this.put(x, y, look(NO_COLOUR, EMPTY, 0, 0));
                    this.drawnLooks[unit] = 0xffff_ffff;
                }
            }
            const next = this.lookOf(unit);
            if (next === this.drawnLooks[unit]) continue;
            this.drawnLooks[unit] = next;
            this.put(layout.x[unit] as number, layout.y[unit] as number, next);
            drawn += 1;
        }
        this.flush();
        this.renderer.show();
        state.taken();
        return drawn;
    }

    private redeal(): void {
        const { layout } = this;
        if (layout === null) return;
        layout.deal(this.keyOf);
        // Pending changes refer to positions of the previous layout.
        this.batch.count = 0;
        this.renderer.begin(this.tiles.width, this.tiles.height, layout.shape.size, this.rendererColours());
        this.flights = [];
        this.drawAll();
    }

    private begin(move: FrameEvent, now: number): void {
        const { layout } = this;
        if (layout === null || this.flights.length >= FLIGHTS || move.unit >= this.state.lane.units) return;
        const half = layout.shape.size / 2;
        const to = move.destination !== null && move.destination < this.state.lane.units ? move.destination : move.unit;
        this.flights.push({
            begun: now,
            colour: this.colours[move.owner] ?? css(rgb(this.options.ground.ink)),
            fromX: (layout.x[move.unit] as number) + half,
            fromY: (layout.y[move.unit] as number) + half,
            toX: (layout.x[to] as number) + half,
            toY: (layout.y[to] as number) + half,
            flies: this.options.moves && move.copiedPages > 0 && to !== move.unit,
            // The size of a moving tile shows the number of copied pages.
            size: Math.max(2 * this.scale, half * 2 * Math.sqrt(move.copiedPages / Math.max(1, move.pages))),
        });
    }

    private drawAbove(now: number): boolean {
        if (this.flights.length === 0 && this.isAboveClean) return false;
        const { above, layout } = this;
        above.clearRect(0, 0, above.canvas.width, above.canvas.height);
        let kept = 0;
        for (let i = 0; i < this.flights.length; i += 1) {
            const flight = this.flights[i] as Flight;
            if (now - flight.begun > (flight.flies ? FLIGHT_MS : MARK_MS)) continue;
            this.flights[kept] = flight;
            kept += 1;
            this.drawFlight(flight, now);
        }
        this.flights.length = kept;
        if (this.focus !== null && layout !== null) {
            const edge = Math.max(2, Math.round(2 * this.scale));
            above.globalAlpha = 1;
            above.strokeStyle = this.options.ground.ink;
            above.lineWidth = edge;
            const size = Math.max(layout.shape.size, 8 * this.scale);
            const off = (size - layout.shape.size) / 2;
            above.strokeRect((layout.x[this.focus] as number) - off - edge / 2, (layout.y[this.focus] as number) - off - edge / 2, size + edge, size + edge);
        }
        above.globalAlpha = 1;
        this.isAboveClean = kept === 0;
        return kept > 0;
    }

    private drawFlight(flight: Flight, now: number): void {
        const { above, layout } = this;
        const size = (layout as Layout).shape.size;
        const mark = 1 - (now - flight.begun) / MARK_MS;
        if (mark > 0) {
            above.globalAlpha = mark;
            above.strokeStyle = this.options.ground.ink;
            above.lineWidth = Math.max(1, 1.5 * this.scale);
            const grown = size + 2 + (this.options.moves ? (1 - mark) * 6 : 2) * this.scale;
            above.strokeRect(flight.fromX - grown / 2, flight.fromY - grown / 2, grown, grown);
        }
        if (!flight.flies) return;
        const share = Math.min(1, (now - flight.begun) / FLIGHT_MS);
        const eased = share * share * (3 - 2 * share);
        above.globalAlpha = share > 0.85 ? (1 - share) / 0.15 : 1;
        above.fillStyle = flight.colour;
        above.strokeStyle = this.options.ground.paper;
        above.lineWidth = this.scale;
        const x = flight.fromX + (flight.toX - flight.fromX) * eased - flight.size / 2;
        // A shallow arc, so that movements in a row do not hide each other.
        const y = flight.fromY + (flight.toY - flight.fromY) * eased - flight.size / 2 - Math.sin(share * Math.PI) * 10 * this.scale;
        above.fillRect(x, y, flight.size, flight.size);
        above.strokeRect(x, y, flight.size, flight.size);
    }

    setFocus(unit: number | null): void {
        if (this.focus === unit) return;
        this.focus = unit;
        this.isAboveClean = false;
    }

    end(): void {
        this.renderer.end();
    }
}

/**
 * The faster available renderer. `?renderer=webgl2` or `?renderer=canvas` in the page's address
 * overrides the choice.
 */
function rendererFor(canvas: HTMLCanvasElement): TileRenderer {
    const wanted = new URLSearchParams(globalThis.location?.search ?? "").get("renderer");
    if (wanted === "canvas" || (wanted !== "webgl2" && !isWebglFast())) return new Canvas2dRenderer(canvas);
    try {
        return new WebglRenderer(canvas);
    } catch {
        return new Canvas2dRenderer(canvas);
    }
}

/**
 * Number of handles up to the last one that wrote or holds data, which the colours must
 * distinguish.
 */
export function usedHandles(state: LaneState): number {
    const isUsed = (index: number) => {
        const totals = state.owners[index];
        return totals !== undefined && (totals.units > 0 || totals.hostBytes > 0);
    };
    let last = 0;
    state.lane.owners.forEach((owner, index) => {
        if (owner.isolation !== null && isUsed(index)) last = index + 1;
    });
    return last;
}
