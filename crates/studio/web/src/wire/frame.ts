// Frames are binary updates about a lane, up to 30 per second.
//
//   bytes of a WebSocket message -> Frame (a view of them) -> LaneState
//
// A frame is read in place, the header once and the rows by index. This module keeps no data, and
// checks only that the length matches the counts. Values are little endian on every machine.

/** Size of the header, bytes. */
export const HEAD_BYTES = 88;
const OWNER_BYTES = 40;
const UNIT_BYTES = 16;
const EVENT_BYTES = 40;
const VERSION = 1;
const NO_UNIT = 0xffff_ffff;

export const PHASES = ["waiting", "filling", "running", "paused", "ended", "failed"] as const;
export type Phase = (typeof PHASES)[number];

export const FREE = 0;
export const OPEN_FOR_HOST = 1;
export const OPEN_FOR_COLLECTION = 2;
export const CLOSED = 3;
export const NO_OWNER = 255;

export type EventKind = "open" | "close" | "reclaim" | "redirect";
const KINDS: readonly EventKind[] = ["open", "close", "reclaim", "redirect"];
export const CLOSE_REASONS = ["full", "host update", "room needed", "isolation changed"] as const;
export const RECLAIM_CAUSES = ["background", "foreground", "forced"] as const;

export interface FrameEvent {
    kind: EventKind;
    owner: number;
    why: number;
    destinationOwner: number;
    unit: number;
    pages: number;
    validPages: number;
    copiedPages: number;
    /** Unit that received the copies, null without one. */
    destination: number | null;
    hostBytes: number;
    nowNs: number;
}

/** Error for an invalid frame. The page shows its message. */
export class FrameError extends Error {}

/** View of one frame. */
export class Frame {
    readonly lane: number;
    readonly phase: Phase;
    readonly whole: boolean;
    readonly owners: number;
    readonly units: number;
    readonly events: number;
    readonly samples: number;
    readonly freeUnits: number;
    readonly hostBytes: number;
    readonly mediaBytes: number;
    readonly filledBytes: number;
    readonly nowNs: number;
    readonly collections: number;
    readonly requests: number;
    readonly eventsLeftOut: number;
    readonly pagesPerSecond: number;
    private readonly view: DataView;
    private readonly unitsAt: number;
    private readonly eventsAt: number;
    private readonly samplesAt: number;
    private readonly sampleBytes: number;

    constructor(buffer: ArrayBuffer) {
        if (buffer.byteLength < HEAD_BYTES) {
            throw new FrameError(`a frame of ${buffer.byteLength} bytes is too short. Reload the page`);
        }
        const view = new DataView(buffer);
        const version = view.getUint8(0);
        if (version !== VERSION) {
            throw new FrameError(`the server sends frames of version ${version}, but this page reads ${VERSION}. Reload the page`);
        }
        const phase = PHASES[view.getUint8(2)];
        if (phase === undefined) {
            throw new FrameError(`a frame has the unknown phase ${view.getUint8(2)}. Reload the page`);
        }
        this.view = view;
        this.lane = view.getUint8(1);
        this.phase = phase;
        this.whole = (view.getUint8(3) & 1) !== 0;
        this.owners = view.getUint32(4, true);
        this.units = view.getUint32(8, true);
        this.events = view.getUint32(12, true);
        this.samples = view.getUint32(16, true);
        this.freeUnits = view.getUint32(20, true);
        this.hostBytes = view.getFloat64(24, true);
        this.mediaBytes = view.getFloat64(32, true);
        this.filledBytes = view.getFloat64(40, true);
        this.nowNs = view.getFloat64(48, true);
        this.collections = view.getFloat64(56, true);
        this.requests = view.getFloat64(64, true);
        this.eventsLeftOut = view.getFloat64(72, true);
        this.pagesPerSecond = view.getFloat64(80, true);
        this.unitsAt = HEAD_BYTES + this.owners * OWNER_BYTES;
        this.eventsAt = this.unitsAt + this.units * UNIT_BYTES;
        this.samplesAt = this.eventsAt + this.events * EVENT_BYTES;
        this.sampleBytes = 16 + 16 * this.owners;
        const bytes = this.samplesAt + this.samples * this.sampleBytes;
        if (bytes !== buffer.byteLength) {
            throw new FrameError(`a frame of ${buffer.byteLength} bytes has a header for ${bytes} bytes. Reload the page`);
        }
    }

    ownerHostBytes(owner: number): number {
        return this.view.getFloat64(HEAD_BYTES + owner * OWNER_BYTES, true);
    }
    ownerCopiedOut(owner: number): number {
        return this.view.getFloat64(HEAD_BYTES + owner * OWNER_BYTES + 8, true);
    }
    ownerReceived(owner: number): number {
        return this.view.getFloat64(HEAD_BYTES + owner * OWNER_BYTES + 16, true);
    }
    ownerValidPages(owner: number): number {
        return this.view.getFloat64(HEAD_BYTES + owner * OWNER_BYTES + 24, true);
    }
    ownerUnits(owner: number): number {
        return this.view.getUint32(HEAD_BYTES + owner * OWNER_BYTES + 32, true);
    }
    ownerReclaimed(owner: number): number {
        return this.view.getUint32(HEAD_BYTES + owner * OWNER_BYTES + 36, true);
    }

    unit(row: number): number {
        return this.view.getUint32(this.unitsAt + row * UNIT_BYTES, true);
    }
    unitState(row: number): number {
        return this.view.getUint8(this.unitsAt + row * UNIT_BYTES + 4);
    }
    unitOwner(row: number): number {
        return this.view.getUint8(this.unitsAt + row * UNIT_BYTES + 5);
    }
    unitGroup(row: number): number {
        return this.view.getUint16(this.unitsAt + row * UNIT_BYTES + 6, true);
    }
    unitValid(row: number): number {
        return this.view.getUint32(this.unitsAt + row * UNIT_BYTES + 8, true);
    }
    unitWritten(row: number): number {
        return this.view.getUint32(this.unitsAt + row * UNIT_BYTES + 12, true);
    }

    event(row: number): FrameEvent {
        const at = this.eventsAt + row * EVENT_BYTES;
        const view = this.view;
        const kind = KINDS[view.getUint8(at) - 1];
        if (kind === undefined) {
            throw new FrameError(`an event has the unknown kind ${view.getUint8(at)}. Reload the page`);
        }
        const destination = view.getUint32(at + 20, true);
        return {
            kind,
            owner: view.getUint8(at + 1),
            why: view.getUint8(at + 2),
            destinationOwner: view.getUint8(at + 3),
            unit: view.getUint32(at + 4, true),
            pages: view.getUint32(at + 8, true),
            validPages: view.getUint32(at + 12, true),
            copiedPages: view.getUint32(at + 16, true),
            destination: destination === NO_UNIT ? null : destination,
            hostBytes: view.getFloat64(at + 24, true),
            nowNs: view.getFloat64(at + 32, true),
        };
    }

    sampleHostBytes(row: number): number {
        return this.view.getFloat64(this.samplesAt + row * this.sampleBytes, true);
    }
    sampleMediaBytes(row: number): number {
        return this.view.getFloat64(this.samplesAt + row * this.sampleBytes + 8, true);
    }
    sampleOwnerHostBytes(row: number, owner: number): number {
        return this.view.getFloat64(this.samplesAt + row * this.sampleBytes + 16 + owner * 16, true);
    }
    sampleOwnerCopied(row: number, owner: number): number {
        return this.view.getFloat64(this.samplesAt + row * this.sampleBytes + 24 + owner * 16, true);
    }
}

/** Content of a frame for `encodeFrame`, used by tests and the simulated drive. */
export interface FrameParts {
    lane: number;
    phase: Phase;
    whole: boolean;
    freeUnits: number;
    hostBytes: number;
    mediaBytes: number;
    filledBytes: number;
    nowNs: number;
    collections: number;
    requests: number;
    eventsLeftOut: number;
    pagesPerSecond: number;
    owners: { hostBytes: number; copiedOut: number; received: number; validPages: number; units: number; reclaimed: number }[];
    units: { unit: number; state: number; owner: number; group: number; valid: number; written: number }[];
    events: FrameEvent[];
    samples: { hostBytes: number; mediaBytes: number; owners: { hostBytes: number; copied: number }[] }[];
}

/** Encodes a frame, for tests and the simulated drive. The page only decodes. */
export function encodeFrame(parts: FrameParts): ArrayBuffer {
    const owners = parts.owners.length;
    const sampleBytes = 16 + 16 * owners;
    const unitsAt = HEAD_BYTES + owners * OWNER_BYTES;
    const eventsAt = unitsAt + parts.units.length * UNIT_BYTES;
    const samplesAt = eventsAt + parts.events.length * EVENT_BYTES;
    const buffer = new ArrayBuffer(samplesAt + parts.samples.length * sampleBytes);
    const view = new DataView(buffer);
    view.setUint8(0, VERSION);
    view.setUint8(1, parts.lane);
    view.setUint8(2, PHASES.indexOf(parts.phase));
    view.setUint8(3, parts.whole ? 1 : 0);
    [owners, parts.units.length, parts.events.length, parts.samples.length, parts.freeUnits].forEach((count, i) =>
        view.setUint32(4 + 4 * i, count, true),
    );
    [
        parts.hostBytes,
        parts.mediaBytes,
        parts.filledBytes,
        parts.nowNs,
        parts.collections,
        parts.requests,
        parts.eventsLeftOut,
        parts.pagesPerSecond,
    ].forEach((value, i) => view.setFloat64(24 + 8 * i, value, true));
    parts.owners.forEach((owner, i) => {
        const at = HEAD_BYTES + i * OWNER_BYTES;
        view.setFloat64(at, owner.hostBytes, true);
        view.setFloat64(at + 8, owner.copiedOut, true);
        view.setFloat64(at + 16, owner.received, true);
        view.setFloat64(at + 24, owner.validPages, true);
        view.setUint32(at + 32, owner.units, true);
        view.setUint32(at + 36, owner.reclaimed, true);
    });
    parts.units.forEach((unit, i) => {
        const at = unitsAt + i * UNIT_BYTES;
        view.setUint32(at, unit.unit, true);
        view.setUint8(at + 4, unit.state);
        view.setUint8(at + 5, unit.owner);
        view.setUint16(at + 6, unit.group, true);
        view.setUint32(at + 8, unit.valid, true);
        view.setUint32(at + 12, unit.written, true);
    });
    parts.events.forEach((event, i) => {
        const at = eventsAt + i * EVENT_BYTES;
        view.setUint8(at, KINDS.indexOf(event.kind) + 1);
        view.setUint8(at + 1, event.owner);
        view.setUint8(at + 2, event.why);
        view.setUint8(at + 3, event.destinationOwner);
        view.setUint32(at + 4, event.unit, true);
        view.setUint32(at + 8, event.pages, true);
        view.setUint32(at + 12, event.validPages, true);
        view.setUint32(at + 16, event.copiedPages, true);
        view.setUint32(at + 20, event.destination ?? NO_UNIT, true);
        view.setFloat64(at + 24, event.hostBytes, true);
        view.setFloat64(at + 32, event.nowNs, true);
    });
    parts.samples.forEach((sample, i) => {
        const at = samplesAt + i * sampleBytes;
        view.setFloat64(at, sample.hostBytes, true);
        view.setFloat64(at + 8, sample.mediaBytes, true);
        sample.owners.forEach((owner, k) => {
            view.setFloat64(at + 16 + k * 16, owner.hostBytes, true);
            view.setFloat64(at + 24 + k * 16, owner.copied, true);
        });
    });
    return buffer;
}
