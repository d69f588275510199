// Simulated drive for work on the page without the engine, with page-level mapping, greedy
// collection and three streams.
//
// It is a toy of 300 lines. The page never shows its numbers as WARP's, and no build contains it.
// The protocol is the real one (src/wire/frame.ts).
import { CLOSED, FREE, NO_OWNER, OPEN_FOR_COLLECTION, OPEN_FOR_HOST, encodeFrame, type FrameEvent, type Phase } from "../src/wire/frame.ts";
import type { Lane, Settings } from "../src/wire/messages.ts";

export interface DriveConfig {
    name: string;
    device: string;
    workload: string;
    scale: string;
    seed: number;
    units: number;
    unitPages: number;
    groups: number;
    timed: boolean;
    placement: "FDP" | "Mixed" | "NoFDP";
    settings: Settings;
    writeCapacities: number;
    of: number | null;
    forked: "here" | "start" | null;
}

const PAGE_BYTES = 4096;
const HANDLES = 8;
const SHARED = HANDLES;
const OWNERS = HANDLES + 1;
const EVENTS_KEPT = 4096;
const SAMPLES_EACH = 0.01;

export class SimulatedDrive {
    readonly lane: Lane;
    phase: Phase = "paused";
    hostPages = 0;
    mediaPages = 0;
    collections = 0;
    requests = 0;
    pagesPerSecond = 0;
    whole = true;
    private random: number;
    private readonly logical: number;
    private readonly l2p: Int32Array;
    private readonly p2l: Int32Array;
    private readonly state: Uint8Array;
    private readonly owner: Uint8Array;
    private readonly valid: Uint32Array;
    private readonly written: Uint32Array;
    private readonly free: number[] = [];
    private readonly open: number[][];
    private readonly totals = Array.from({ length: OWNERS }, () => ({ hostPages: 0, copiedOut: 0, received: 0, reclaimed: 0 }));
    private changed = new Set<number>();
    private events: FrameEvent[] = [];
    private leftOut = 0;
    private samples: { hostBytes: number; mediaBytes: number; owners: { hostBytes: number; copied: number }[] }[] = [];
    private sent = 0;
    private sequential = 0;
    private readonly config: DriveConfig;
    private readonly isPersistent: boolean;

    constructor(config: DriveConfig) {
        this.config = config;
        this.random = (config.seed * 2654435761) >>> 0 || 1;
        const op = Number(config.settings["geometry.over_provisioning"] ?? 0.178);
        const physical = config.units * config.unitPages;
        this.isPersistent = config.settings["handles.isolation"] === "persistently_isolated";
        this.logical = Math.min(Math.floor(physical / (1 + op)), physical - 24 * config.unitPages);
        this.l2p = new Int32Array(this.logical).fill(-1);
        this.p2l = new Int32Array(physical).fill(-1);
        this.state = new Uint8Array(config.units);
        this.owner = new Uint8Array(config.units).fill(NO_OWNER);
        this.valid = new Uint32Array(config.units);
        this.written = new Uint32Array(config.units);
        for (let unit = config.units - 1; unit >= 0; unit -= 1) this.free.push(unit);
        this.open = [new Array<number>(OWNERS).fill(-1), new Array<number>(OWNERS).fill(-1)];
        const isolation = this.isPersistent ? "PI" : "II";
        this.lane = {
            name: config.name,
            device: config.device,
            workload: config.workload,
            scale: config.scale,
            seed: config.seed,
            of: config.of,
            forked: config.forked,
            page_bytes: PAGE_BYTES,
            capacity_bytes: this.logical * PAGE_BYTES,
            physical_bytes: physical * PAGE_BYTES,
            unit_pages: config.unitPages,
            units: config.units,
            superblocks: config.units,
            groups: config.groups,
            owners: [...Array.from({ length: HANDLES }, (_, handle) => ({ name: `RUH ${handle}`, isolation: isolation as "II" | "PI" })), { name: "shared pool", isolation: null }],
            placements: Array.from({ length: OWNERS }, (_, owner) => (config.placement === "NoFDP" ? ["all", "", ""] : config.placement === "Mixed" ? ["sequential, overwrite", "random", ""] : ["sequential", "random", "overwrite"])[owner] ?? ""),
            marks: { background_free_units: 20, foreground_free_units: 8 },
            timed: config.timed,
            write_bytes: config.workload === "served" ? null : config.writeCapacities * this.logical * PAGE_BYTES,
            settings: { "gc.victim_policy": "greedy", "handles.isolation": "initially_isolated", "geometry.over_provisioning": op, ...config.settings },
        };
    }

    private draw(): number {
        this.random ^= this.random << 13;
        this.random >>>= 0;
        this.random ^= this.random >>> 17;
        this.random ^= this.random << 5;
        this.random >>>= 0;
        return this.random / 4294967296;
    }

    get endPages(): number {
        return Math.floor(this.config.writeCapacities * this.logical);
    }

    /** Advances until the host has written this many pages, or the time is up. */
    advance(pages: number, untilMs: number): void {
        const target = Math.min(pages, this.endPages);
        const begun = this.hostPages;
        const at = performance.now();
        while (this.hostPages < target) {
            for (let i = 0; i < 64 && this.hostPages < target; i += 1) this.request();
            if (performance.now() > untilMs) break;
        }
        const seconds = (performance.now() - at) / 1000;
        if (this.hostPages > begun && seconds > 0) this.pagesPerSecond = (this.hostPages - begun) / seconds;
        if (this.hostPages >= this.endPages) this.phase = "ended";
    }

    private request(): void {
        this.requests += 1;
        const region = Math.floor(this.logical * 0.87);
        // The drive is filled once before the three streams begin.
        if (this.hostPages < this.logical) {
            const page = this.hostPages;
            this.write(page, page < region ? 0 : 1);
            return;
        }
        const dice = this.draw();
        if (dice < 0.4) {
            for (let i = 0; i < 8; i += 1) {
                this.write(this.sequential, 0);
                this.sequential = (this.sequential + 1) % region;
            }
        } else if (dice < 0.75) {
            this.write(region + Math.floor(this.draw() * (this.logical - region)), 1);
        } else {
            this.write(Math.floor(region * this.draw() ** 4), 2);
        }
    }

    private handle(stream: number): number {
        if (this.config.placement === "NoFDP") return 0;
        return this.config.placement === "Mixed" && stream === 2 ? 0 : stream;
    }

    private write(page: number, stream: number): void {
        if (this.hostPages >= this.endPages) return;
        const owner = this.handle(stream);
        this.put(page, owner, 0);
        this.hostPages += 1;
        this.mediaPages += 1;
        (this.totals[owner] as { hostPages: number }).hostPages += 1;
        if (this.hostPages % Math.max(1, Math.floor(this.logical * SAMPLES_EACH)) === 0) {
            this.samples.push({
                hostBytes: this.hostPages * PAGE_BYTES,
                mediaBytes: this.mediaPages * PAGE_BYTES,
                owners: this.totals.map((one) => ({ hostBytes: one.hostPages * PAGE_BYTES, copied: one.copiedOut })),
            });
        }
        if (this.free.length <= this.lane.marks.background_free_units) this.collect();
    }

    private put(page: number, owner: number, purpose: 0 | 1): void {
        const before = this.l2p[page] as number;
        if (before >= 0) {
            const unit = Math.floor(before / this.config.unitPages);
            this.valid[unit] = (this.valid[unit] as number) - 1;
            this.p2l[before] = -1;
            this.changed.add(unit);
        }
        const opened = this.open[purpose] as number[];
        let unit = opened[owner] as number;
        if (unit < 0) {
            unit = this.free.pop() as number;
            if (unit === undefined) throw new Error("the simulated drive is full");
            opened[owner] = unit;
            this.state[unit] = purpose === 0 ? OPEN_FOR_HOST : OPEN_FOR_COLLECTION;
            this.owner[unit] = owner;
            this.event("open", owner, 0, unit, 0, 0, null, owner);
        }
        const at = unit * this.config.unitPages + (this.written[unit] as number);
        this.l2p[page] = at;
        this.p2l[at] = page;
        this.written[unit] = (this.written[unit] as number) + 1;
        this.valid[unit] = (this.valid[unit] as number) + 1;
        this.changed.add(unit);
        if (this.written[unit] === this.config.unitPages) {
            this.state[unit] = CLOSED;
            opened[owner] = -1;
            this.event("close", owner, 0, unit, 0, 0, null, owner);
        }
    }

    private victim(): number {
        const isFifo = this.config.settings["gc.victim_policy"] === "random";
        let best = -1;
        const tries = isFifo ? 1 : 48;
        for (let i = 0, drawn = 0; i < 4000 && drawn < tries; i += 1) {
            const unit = Math.floor(this.draw() * this.config.units);
            if (this.state[unit] !== CLOSED) continue;
            drawn += 1;
            if (best < 0 || (this.valid[unit] as number) < (this.valid[best] as number)) best = unit;
        }
        return best;
    }

    private collect(): void {
        const victim = this.victim();
        if (victim < 0) return;
        const owner = this.owner[victim] as number;
        const to = this.isPersistent && owner !== SHARED ? owner : SHARED;
        const copied = this.valid[victim] as number;
        let destination: number | null = null;
        for (let at = victim * this.config.unitPages; at < (victim + 1) * this.config.unitPages; at += 1) {
            const page = this.p2l[at] as number;
            if (page < 0) continue;
            this.put(page, to, 1);
            destination ??= Math.floor((this.l2p[page] as number) / this.config.unitPages);
        }
        this.mediaPages += copied;
        this.collections += 1;
        const totals = this.totals[owner] as (typeof this.totals)[number];
        totals.copiedOut += copied;
        totals.reclaimed += 1;
        (this.totals[to] as { received: number }).received += copied;
        const why = this.free.length <= this.lane.marks.foreground_free_units ? 1 : 0;
        this.event("reclaim", owner, why, victim, copied, copied, destination, to);
        this.state[victim] = FREE;
        this.owner[victim] = NO_OWNER;
        this.valid[victim] = 0;
        this.written[victim] = 0;
        this.free.unshift(victim);
        this.changed.add(victim);
    }

    private event(kind: FrameEvent["kind"], owner: number, why: number, unit: number, validPages: number, copiedPages: number, destination: number | null, destinationOwner: number): void {
        if (this.events.length >= EVENTS_KEPT) {
            this.leftOut += 1;
            return;
        }
        this.events.push({ kind, owner, why, destinationOwner, unit, pages: this.config.unitPages, validPages, copiedPages, destination, hostBytes: this.hostPages * PAGE_BYTES, nowNs: this.nowNs });
    }

    get nowNs(): number {
        return this.lane.timed ? this.mediaPages * 1400 : 0;
    }

    /** Next frame. The first frame contains all units. */
    frame(index: number, paused: boolean): ArrayBuffer {
        const units = this.whole ? Array.from({ length: this.config.units }, (_, unit) => unit) : [...this.changed];
        const held = new Array<number>(OWNERS).fill(0);
        const valid = new Array<number>(OWNERS).fill(0);
        for (let unit = 0; unit < this.config.units; unit += 1) {
            const owner = this.owner[unit] as number;
            if (owner === NO_OWNER) continue;
            held[owner] = (held[owner] as number) + 1;
            valid[owner] = (valid[owner] as number) + (this.valid[unit] as number);
        }
        const frame = encodeFrame({
            lane: index,
            phase: this.phase === "ended" ? "ended" : paused ? "paused" : "running",
            whole: this.whole,
            freeUnits: this.free.length,
            hostBytes: this.hostPages * PAGE_BYTES,
            mediaBytes: this.mediaPages * PAGE_BYTES,
            filledBytes: 0,
            nowNs: this.nowNs,
            collections: this.collections,
            requests: this.requests,
            eventsLeftOut: this.leftOut,
            pagesPerSecond: this.pagesPerSecond,
            owners: this.totals.map((one, owner) => ({ hostBytes: one.hostPages * PAGE_BYTES, copiedOut: one.copiedOut, received: one.received, validPages: valid[owner] as number, units: held[owner] as number, reclaimed: one.reclaimed })),
            units: units.map((unit) => ({ unit, state: this.state[unit] as number, owner: this.owner[unit] as number, group: Math.floor((unit * this.config.groups) / this.config.units), valid: this.valid[unit] as number, written: this.written[unit] as number })),
            events: this.events,
            samples: this.samples.slice(this.whole ? 0 : this.sent),
        });
        this.sent = this.samples.length;
        this.events = [];
        this.leftOut = 0;
        this.changed.clear();
        this.whole = false;
        return frame;
    }
}
