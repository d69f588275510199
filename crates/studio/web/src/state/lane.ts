// A lane as the page knows it: the frames of its drive, added up.
//
//   Frame (what changed) -> LaneState (all units, owners, samples, the last events) -> map, curves, tables
//
// Rows of units lie in columns, and which of them changed is noted for whoever draws, so that a frame costs what it changes and
// nothing is allocated for it. It knows nothing of how anything is drawn.
import { FREE, NO_OWNER, OPEN_FOR_COLLECTION, OPEN_FOR_HOST, type Frame, type FrameEvent, type Phase } from "../wire/frame.ts";
import type { Gap } from "./series.ts";
import type { CellResult, Lane, LatencyMessage, Wear } from "../wire/messages.ts";

/** Events that are kept: enough to scroll, with an end. */
export const EVENTS_KEPT = 4096;
/** Reclaims that wait to be drawn as movement; more than a screen can show are left out. */
const MOVES_KEPT = 64;

export interface LoggedEvent extends FrameEvent {
    /** Counts all events of the lane from the start of the page, to tell rows apart. */
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

/** Columns of numbers that grow. */
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
    /** Slices that a unit takes, where superblocks are divided: 1 or more; 0 for one that belongs to a unit before it. */
    private readonly span: Uint8Array;
    /** Pages of the unit that was opened there last; 0 if that was not seen. */
    private readonly openedPages: Uint32Array;
    /** Units that changed since they were last taken; the first `changedCount` count. */
    readonly changed: Uint32Array;
    changedCount = 0;
    /** Grows whenever all units were forgotten. */
    generation = 0;
    private readonly isChanged: Uint8Array;

    readonly sampleHost = new Column();
    readonly sampleMedia = new Column();
    readonly sampleOwnerHost: Column[];
    readonly sampleOwnerCopied: Column[];

    /** The last events, the newest last. */
    events: LoggedEvent[] = [];
    private eventNumber = 0;
    /** Reclaims that have not been drawn yet. */
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

    /** Whether frames of `lane` can be added to this state: the same drive with the same rows. */
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
        // Groups are dealt in equal runs; a frame may say otherwise of a unit.
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

    /** Whoever draws has seen all changes. */
    taken(): void {
        for (let i = 0; i < this.changedCount; i += 1) this.isChanged[this.changed[i] as number] = 0;
        this.changedCount = 0;
    }

    /** Adds a frame. Rows that name a unit or an owner that the lane does not have are left out. */
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

    /** Gives a unit the slices after it that are its own, and takes back those that are not any more. */
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

    /** The unit that a slice belongs to: itself, but where a unit takes several. */
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
        // Cut in large pieces, so that not every frame moves the whole list.
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

    /** Host bytes between which nobody looked at a served drive. */
    get gaps(): Gap[] {
        return (this.lane.unwatched ?? []).map((one) => ({ from: one.from_host_bytes, to: one.to_host_bytes }));
    }

    /** Pages of a slice: of a whole unit, where superblocks are not divided. */
    get unitPages(): number {
        return Math.max(1, this.lane.unit_pages);
    }

    get waf(): number | null {
        return this.hostBytes > 0 ? this.mediaBytes / this.hostBytes : null;
    }

    /** Multiples of the capacity that the host has written. */
    get capacities(): number {
        return this.hostBytes / this.lane.capacity_bytes;
    }

    /** What a handle's own data costs: its host bytes and what was copied out of its units, over its host bytes. */
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
