// State of a lane on the page, accumulated from frames.
//
//   Frame (changes) -> LaneState (all units, owners, samples, last events) -> map, curves, tables
//
// Units are stored in columns, with a list of changed units for the renderer. So a frame costs no
// more than its changes and allocates no memory. This module does not draw.
import { FREE, NO_OWNER, OPEN_FOR_COLLECTION, OPEN_FOR_HOST, type Frame, type FrameEvent, type Phase } from "../wire/frame.ts";
import type { Gap } from "./series.ts";
import type { CellResult, Lane, LatencyMessage, Wear } from "../wire/messages.ts";

/** Maximum events in the log. */
export const EVENTS_KEPT = 4096;
/** Maximum reclaims that wait for their animation. More than a screen can show are dropped. */
const MOVES_KEPT = 64;

export interface LoggedEvent extends FrameEvent {
    /** Number of the event since the page opened, which identifies its row. */
    number: number;
}

export interface OwnerTotals {
    hostBytes: number;
    copiedOut: number;
    received: number;
    validPages: number;
    units: number;
    reclaimed: number;
}

/** Growing columns of numbers. */
export class Column {
    private values = new Float64Array(256);
    length = 0;

    push(value: number): void {
        if (this.length === this.values.length) {
            const larger = new Float64Array(this.length * 2);
            larger.set(this.values);
            this.values = larger;
        }
        this.values[this.length] = value;
        this.length += 1;
    }
    at(index: number): number {
        return this.values[index] ?? Number.NaN;
    }
    clear(): void {
        this.length = 0;
    }
}

export class LaneState {
    lane: Lane;
    phase: Phase = "waiting";
    hostBytes = 0;
    mediaBytes = 0;
    filledBytes = 0;
    nowNs = 0;
    collections = 0;
    requests = 0;
    freeUnits = 0;
    pagesPerSecond = 0;
    eventsLeftOut = 0;
    owners: OwnerTotals[] = [];

    readonly state: Uint8Array;
    readonly owner: Uint8Array;
    readonly group: Uint16Array;
    readonly valid: Uint32Array;
    readonly written: Uint32Array;
    /**
     * Number of slices of a unit if superblocks are divided. 0 for a slice that belongs to an
     * earlier unit.
     */
    private readonly span: Uint8Array;
    /** Pages of the unit last opened here. 0 if the page did not receive that event. */
    private readonly openedPages: Uint32Array;
    /** Units changed since the last drawing. The first `changedCount` entries are valid. */
    readonly changed: Uint32Array;
    changedCount = 0;
    /** Incremented when all units become invalid. */
    generation = 0;
    private readonly isChanged: Uint8Array;

    readonly sampleHost = new Column();
    readonly sampleMedia = new Column();
    readonly sampleOwnerHost: Column[];
    readonly sampleOwnerCopied: Column[];

    /** Latest events, newest last. */
    events: LoggedEvent[] = [];
    private eventNumber = 0;
    /** Reclaims whose animation has not started. */
    moves: FrameEvent[] = [];

    result: CellResult | null = null;
    latency: LatencyMessage | null = null;
    wear: Wear | null = null;

    constructor(lane: Lane) {
        this.lane = lane;
        const units = lane.units;
        this.state = new Uint8Array(units);
        this.owner = new Uint8Array(units).fill(NO_OWNER);
        this.group = new Uint16Array(units);
        this.valid = new Uint32Array(units);
        this.written = new Uint32Array(units);
        this.span = new Uint8Array(units).fill(1);
        this.openedPages = new Uint32Array(units);
        this.changed = new Uint32Array(units);
        this.isChanged = new Uint8Array(units);
        this.freeUnits = units;
        this.sampleOwnerHost = lane.owners.map(() => new Column());
        this.sampleOwnerCopied = lane.owners.map(() => new Column());
        this.forget();
    }

    /** True if frames of `lane` fit this state, with the same drive and the same rows. */
    fits(lane: Lane): boolean {
        const mine = this.lane;
        return mine.units === lane.units && mine.owners.length === lane.owners.length && mine.unit_pages === lane.unit_pages && mine.device === lane.device;
    }

    private forget(): void {
        this.state.fill(FREE);
        this.owner.fill(NO_OWNER);
        this.valid.fill(0);
        this.written.fill(0);
        this.span.fill(1);
        this.openedPages.fill(0);
        // Groups consist of equal runs of units, unless a frame gives another group.
        const each = Math.max(1, Math.ceil(this.lane.units / Math.max(1, this.lane.groups)));
        for (let unit = 0; unit < this.lane.units; unit += 1) {
            this.group[unit] = Math.floor(unit / each);
            this.note(unit);
        }
        this.sampleHost.clear();
        this.sampleMedia.clear();
        for (const column of this.sampleOwnerHost) column.clear();
        for (const column of this.sampleOwnerCopied) column.clear();
        this.events = [];
        this.moves = [];
        this.eventsLeftOut = 0;
        this.result = null;
        this.generation += 1;
    }

    private note(unit: number): void {
        if (this.isChanged[unit] === 1) return;
        this.isChanged[unit] = 1;
        this.changed[this.changedCount] = unit;
        this.changedCount += 1;
    }

    /** Clears the list of changed units after drawing. */
    taken(): void {
        for (let i = 0; i < this.changedCount; i += 1) this.isChanged[this.changed[i] as number] = 0;
        this.changedCount = 0;
    }

    /** Adds a frame. Rows with an unknown unit or owner are ignored. */
    apply(frame: Frame): void {
        if (frame.whole) this.forget();
        this.phase = frame.phase;
        this.hostBytes = frame.hostBytes;
        this.mediaBytes = frame.mediaBytes;
        this.filledBytes = frame.filledBytes;
        this.nowNs = frame.nowNs;
        this.collections = frame.collections;
        this.requests = frame.requests;
        this.freeUnits = frame.freeUnits;
        this.pagesPerSecond = frame.pagesPerSecond;
        this.eventsLeftOut += frame.eventsLeftOut;
        this.applyOwners(frame);
        this.applyEvents(frame);
        this.applyUnits(frame);
        this.applySamples(frame);
    }

    private applyOwners(frame: Frame): void {
        while (this.owners.length < frame.owners) {
            this.owners.push({ hostBytes: 0, copiedOut: 0, received: 0, validPages: 0, units: 0, reclaimed: 0 });
        }
        for (let owner = 0; owner < frame.owners; owner += 1) {
            const totals = this.owners[owner] as OwnerTotals;
            totals.hostBytes = frame.ownerHostBytes(owner);
            totals.copiedOut = frame.ownerCopiedOut(owner);
            totals.received = frame.ownerReceived(owner);
            totals.validPages = frame.ownerValidPages(owner);
            totals.units = frame.ownerUnits(owner);
            totals.reclaimed = frame.ownerReclaimed(owner);
        }
    }

    private applyUnits(frame: Frame): void {
        for (let row = 0; row < frame.units; row += 1) {
            const unit = frame.unit(row);
            if (unit >= this.state.length) continue;
            const state = frame.unitState(row);
            this.state[unit] = state;
            this.owner[unit] = state === FREE ? NO_OWNER : frame.unitOwner(row);
            this.group[unit] = frame.unitGroup(row);
            this.valid[unit] = frame.unitValid(row);
            this.written[unit] = frame.unitWritten(row);
            if (this.slices > 1) this.spread(unit);
            this.note(unit);
        }
    }

    /** Slices of a superblock. */
    private get slices(): number {
        return Math.max(1, Math.min(255, Math.round(this.lane.units / Math.max(1, this.lane.superblocks))));
    }

    /** Assigns a unit its following slices, and releases slices that it no longer has. */
    private spread(unit: number): void {
        const isFree = this.state[unit] === FREE;
        if (isFree) this.openedPages[unit] = 0;
        const pages = Math.max(this.openedPages[unit] as number, this.written[unit] as number);
        const span = isFree ? 1 : Math.max(1, Math.min(this.slices, Math.ceil(pages / this.unitPages)));
        const before = Math.max(1, this.span[unit] as number);
        this.span[unit] = span;
        for (let slice = 1; slice < Math.max(span, before) && unit + slice < this.span.length; slice += 1) {
            this.span[unit + slice] = slice < span ? 0 : 1;
            this.note(unit + slice);
        }
    }

    /** Unit that a slice belongs to. */
    unitOf(slice: number): number {
        let unit = slice;
        while (unit > 0 && this.span[unit] === 0) unit -= 1;
        return unit;
    }

    /** Pages of the unit that a slice belongs to. */
    pagesOf(slice: number): number {
        return Math.max(1, this.span[this.unitOf(slice)] as number) * this.unitPages;
    }

    private applyEvents(frame: Frame): void {
        for (let row = 0; row < frame.events; row += 1) {
            const event = frame.event(row) as LoggedEvent;
            event.number = this.eventNumber;
            this.eventNumber += 1;
            this.events.push(event);
            if (event.kind === "open" && event.unit < this.openedPages.length) this.openedPages[event.unit] = event.pages;
            if (event.kind === "reclaim" && this.moves.length < MOVES_KEPT) this.moves.push(event);
        }
        // Removes large blocks of events, so that not every frame moves the whole list.
        if (this.events.length > EVENTS_KEPT * 2) this.events = this.events.slice(-EVENTS_KEPT);
    }

    private applySamples(frame: Frame): void {
        const owners = Math.min(frame.owners, this.sampleOwnerHost.length);
        for (let row = 0; row < frame.samples; row += 1) {
            this.sampleHost.push(frame.sampleHostBytes(row));
            this.sampleMedia.push(frame.sampleMediaBytes(row));
            for (let owner = 0; owner < owners; owner += 1) {
                this.sampleOwnerHost[owner]?.push(frame.sampleOwnerHostBytes(row, owner));
                this.sampleOwnerCopied[owner]?.push(frame.sampleOwnerCopied(row, owner));
            }
        }
    }

    /** Ranges of host bytes written to a served drive while no page was connected. */
    get gaps(): Gap[] {
        return (this.lane.unwatched ?? []).map((one) => ({ from: one.from_host_bytes, to: one.to_host_bytes }));
    }

    /** Pages of a slice, or of a whole unit if superblocks are not divided. */
    get unitPages(): number {
        return Math.max(1, this.lane.unit_pages);
    }

    get waf(): number | null {
        return this.hostBytes > 0 ? this.mediaBytes / this.hostBytes : null;
    }

    /** Bytes written by the host, in multiples of the capacity. */
    get capacities(): number {
        return this.hostBytes / this.lane.capacity_bytes;
    }

    /**
     * Write amplification of a handle. It is the sum of its host bytes and the bytes copied out of
     * its units, divided by its host bytes.
     */
    ownerWaf(owner: number): number | null {
        const totals = this.owners[owner];
        if (totals === undefined || totals.hostBytes === 0) return null;
        return (totals.hostBytes + totals.copiedOut * this.lane.page_bytes) / totals.hostBytes;
    }

    isOpen(unit: number): boolean {
        const state = this.state[unit];
        return state === OPEN_FOR_HOST || state === OPEN_FOR_COLLECTION;
    }
}
