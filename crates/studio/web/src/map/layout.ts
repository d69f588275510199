// Position of each reclaim unit's tile.
//
//   units, groups or owners, width -> Layout (a place for each unit, headings of regions)
//
// In physical order and by reclaim group, a unit keeps its position. By handle, it moves to its
// owner's region when it is opened, and back to the free region when it is erased. A region has
// spare rows, and a unit takes the first empty position. Only a full region causes a new layout.
// All lengths are pixels of the canvas.
import { NO_OWNER } from "../wire/frame.ts";

export type Grouping = "handle" | "group" | "physical";

export interface Region {
    /** Content of the region, which is an owner's index, a reclaim group's number, or 0. */
    key: number;
    /** Top of its heading and top of its tiles. */
    top: number;
    tilesTop: number;
    rows: number;
}

export interface Shape {
    /** Distance from a tile to the next, and size of a tile. */
    pitch: number;
    size: number;
    columns: number;
    width: number;
    height: number;
}

export const LARGEST_PITCH = 26;
export const SMALLEST_PITCH = 2;

/** Gap between tiles for a pitch, 0 if tiles are points. */
export function sizeOf(pitch: number): number {
    if (pitch >= 14) return pitch - 2;
    return pitch >= 5 ? pitch - 1 : pitch;
}

/**
 * Largest pitch at which regions of `counts` tiles, each with a heading and `spareRows`, fit into
 * `height`.
 */
export function choosePitch(counts: number[], width: number, height: number, heading: number, spareRows: number, scale: number): number {
    for (let pitch = Math.floor(LARGEST_PITCH * scale); pitch > SMALLEST_PITCH; pitch -= 1) {
        if (heightAt(counts, width, pitch, heading, spareRows) <= height) return pitch;
    }
    return SMALLEST_PITCH;
}

function heightAt(counts: number[], width: number, pitch: number, heading: number, spareRows: number): number {
    const columns = Math.max(1, Math.floor(width / pitch));
    return counts.reduce((sum, count) => sum + heading + (Math.ceil(count / columns) + spareRows) * pitch, 0);
}

/** Positions of all units. */
export class Layout {
    readonly grouping: Grouping;
    readonly shape: Shape;
    regions: Region[] = [];
    /** Left and top of each unit's tile. */
    readonly x: Uint16Array;
    readonly y: Uint16Array;
    /** Unit at a position, or -1. The positions of a region are consecutive. */
    private places = new Int32Array(0);
    private regionOf: Int16Array;
    private firstPlace: number[] = [];
    private placeOf: Int32Array;
    /**
     * Lower bound for the first empty position of a region, so that a unit finds a position without
     * a search.
     */
    private firstEmpty: number[] = [];
    private readonly keys: number[];
    private readonly heading: number;
    private readonly units: number;

    /** `keys` are the regions from top to bottom, `keyOf` gives the region of a unit. */
    constructor(grouping: Grouping, units: number, keys: number[], keyOf: (unit: number) => number, shape: Omit<Shape, "size" | "columns" | "height">, heading: number) {
        this.grouping = grouping;
        this.units = units;
        this.keys = keys;
        this.heading = heading;
        const columns = Math.max(1, Math.floor(shape.width / shape.pitch));
        this.shape = { ...shape, size: sizeOf(shape.pitch), columns, height: 0 };
        this.x = new Uint16Array(units);
        this.y = new Uint16Array(units);
        this.regionOf = new Int16Array(units);
        this.placeOf = new Int32Array(units);
        this.deal(keyOf);
    }

    /** Assigns all positions again. */
    deal(keyOf: (unit: number) => number): void {
        const regionAt = new Map(this.keys.map((key, index) => [key, index]));
        const counts = new Array<number>(this.keys.length).fill(0);
        for (let unit = 0; unit < this.units; unit += 1) {
            const region = regionAt.get(keyOf(unit)) ?? this.keys.length - 1;
            this.regionOf[unit] = region;
            counts[region] = (counts[region] as number) + 1;
        }
        const { columns, pitch } = this.shape;
        // By handle, a region gets an extra row, so that the next unit does not fill it.
        const spare = this.grouping === "handle" ? 1 : 0;
        let top = 0;
        let place = 0;
        this.regions = [];
        this.firstPlace = [];
        this.firstEmpty = [];
        this.keys.forEach((key, index) => {
            const rows = Math.ceil((counts[index] as number) / columns) + spare;
            this.regions.push({ key, top, tilesTop: top + this.heading, rows });
            this.firstPlace.push(place);
            this.firstEmpty.push(place);
            place += rows * columns;
            top += this.heading + rows * pitch;
        });
        this.firstPlace.push(place);
        this.shape.height = top;
        this.places = new Int32Array(place).fill(-1);
        for (let unit = 0; unit < this.units; unit += 1) this.put(unit, this.regionOf[unit] as number);
    }

    private put(unit: number, region: number): boolean {
        const end = this.firstPlace[region + 1] as number;
        let place = this.firstEmpty[region] as number;
        while (place < end && this.places[place] !== -1) place += 1;
        if (place >= end) return false;
        this.firstEmpty[region] = place + 1;
        this.places[place] = unit;
        this.placeOf[unit] = place;
        this.regionOf[unit] = region;
        const inRegion = place - (this.firstPlace[region] as number);
        const { columns, pitch } = this.shape;
        this.x[unit] = (inRegion % columns) * pitch;
        this.y[unit] = (this.regions[region] as Region).tilesTop + Math.floor(inRegion / columns) * pitch;
        return true;
    }

    /**
     * Moves a unit to the region of `key`. Returns `moved` if its previous position is empty and
     * must be drawn, and `full` if all positions must be assigned again.
     */
    move(unit: number, key: number): "stays" | "moved" | "full" {
        const before = this.regionOf[unit] as number;
        // Nearly all changed units keep their positions, and these need no search.
        if (this.keys[before] === key) return "stays";
        const region = this.keys.indexOf(key);
        if (region < 0) return "stays";
        const placeBefore = this.placeOf[unit] as number;
        if (!this.put(unit, region)) return "full";
        this.places[placeBefore] = -1;
        if (placeBefore < (this.firstEmpty[before] as number)) this.firstEmpty[before] = placeBefore;
        return "moved";
    }

    /** Unit under a point, or null. */
    unitAt(x: number, y: number): number | null {
        const { pitch, columns } = this.shape;
        if (x < 0 || x >= columns * pitch) return null;
        for (let region = 0; region < this.regions.length; region += 1) {
            const { tilesTop, rows } = this.regions[region] as Region;
            if (y < tilesTop || y >= tilesTop + rows * pitch) continue;
            const place = (this.firstPlace[region] as number) + Math.floor((y - tilesTop) / pitch) * columns + Math.floor(x / pitch);
            const unit = this.places[place] ?? -1;
            return unit >= 0 ? unit : null;
        }
        return null;
    }

    /**
     * Neighbour of a unit on the map, or the unit itself without a neighbour. Rows without a unit
     * in this column are skipped.
     */
    beside(unit: number, dx: number, dy: number): number {
        const step = (dy === 0 ? dx : dy * this.shape.columns) | 0;
        for (let place = (this.placeOf[unit] as number) + step; place >= 0 && place < this.places.length; place += step) {
            const found = this.places[place] as number;
            if (found >= 0) return found;
        }
        return unit;
    }

    /** First unit on the map. */
    first(): number {
        return this.places.find((unit) => unit >= 0) ?? 0;
    }
}

/** Regions by handle, first each owner, then the free units. */
export function handleKeys(owners: number): number[] {
    return [...Array<unknown>(owners).keys(), NO_OWNER];
}
