// Write amplification over written volume, from the samples of a lane.
import type { LaneState } from "./lane.ts";

export interface Series {
    /** Multiples of the capacity. */
    x: number[];
    /** null if the host wrote nothing in the window. */
    y: (number | null)[];
}

export interface Points {
    length: number;
    /** Host bytes written, the position of a point on the axis. */
    at(index: number): number;
    host(index: number): number;
    media(index: number): number;
}

/** Media bytes divided by host bytes since the beginning. */
export function cumulative(points: Points, capacityBytes: number): Series {
    const series: Series = { x: [], y: [] };
    for (let i = 0; i < points.length; i += 1) {
        const host = points.host(i);
        if (host <= 0) continue;
        series.x.push(points.at(i) / capacityBytes);
        series.y.push(points.media(i) / host);
    }
    return series;
}

/**
 * Range of host bytes without samples, because no page was connected. Only the sums at both ends
 * are known.
 */
export interface Gap {
    from: number;
    to: number;
}

/** Distance too small to see, which still separates two points. */
const BESIDE = 1e-7;

/**
 * Media bytes divided by host bytes over the last `windowBytes`, or over a shorter range at the
 * beginning and after a gap. Within a gap the value is its mean.
 */
export function windowed(points: Points, capacityBytes: number, windowBytes: number, gaps: Gap[] = []): Series {
    const series: Series = { x: [], y: [] };
    let first = -1;
    let passed = 0;
    for (let i = 0; i < points.length; i += 1) {
        const host = points.host(i);
        for (let gap = gaps[passed]; gap !== undefined && points.at(i) >= gap.to; gap = gaps[passed]) {
            let base = i - 1;
            while (base >= 0 && points.at(base) > gap.from) base -= 1;
            const hostBefore = base < 0 ? 0 : points.host(base);
            const mean = host > hostBefore ? (points.media(i) - (base < 0 ? 0 : points.media(base))) / (host - hostBefore) : null;
            series.x.push(gap.from / capacityBytes + BESIDE, gap.to / capacityBytes);
            series.y.push(mean, mean);
            first = i;
            passed += 1;
        }
        // A window starts at the end of a gap and has no samples within it.
        if (first === i || points.at(i) > (gaps[passed]?.from ?? Number.POSITIVE_INFINITY)) continue;
        // `first` is the last sample at least a window back. -1 is the beginning, where both
        // counters are 0.
        while (first + 1 < i && points.at(i) - points.at(first + 1) >= windowBytes) first += 1;
        const hostBefore = first < 0 ? 0 : points.host(first);
        const mediaBefore = first < 0 ? 0 : points.media(first);
        if (host <= 0) continue;
        series.x.push(points.at(i) / capacityBytes);
        series.y.push(host > hostBefore ? (points.media(i) - mediaBefore) / (host - hostBefore) : null);
    }
    return series;
}

/** All samples of a lane and its current position. */
export function pointsOfLane(state: LaneState): Points {
    const count = state.sampleHost.length;
    const hasNow = state.hostBytes > (count === 0 ? 0 : state.sampleHost.at(count - 1));
    return {
        length: count + (hasNow ? 1 : 0),
        at: (index) => (index < count ? state.sampleHost.at(index) : state.hostBytes),
        host: (index) => (index < count ? state.sampleHost.at(index) : state.hostBytes),
        media: (index) => (index < count ? state.sampleMedia.at(index) : state.mediaBytes),
    };
}

/** Host bytes of a handle, and the sum of these and the bytes copied out of its units. */
export function pointsOfOwner(state: LaneState, owner: number): Points {
    const host = state.sampleOwnerHost[owner];
    const copied = state.sampleOwnerCopied[owner];
    const page = state.lane.page_bytes;
    return {
        length: host === undefined || copied === undefined ? 0 : host.length,
        at: (index) => state.sampleHost.at(index),
        host: (index) => host?.at(index) ?? 0,
        media: (index) => (host?.at(index) ?? 0) + (copied?.at(index) ?? 0) * page,
    };
}

/**
 * Write amplification since the host had written `fromBytes`. null if nothing was written since.
 */
export function wafSince(state: LaneState, fromBytes: number): number | null {
    let host = 0;
    let media = 0;
    for (let i = 0; i < state.sampleHost.length && state.sampleHost.at(i) <= fromBytes; i += 1) {
        host = state.sampleHost.at(i);
        media = state.sampleMedia.at(i);
    }
    return state.hostBytes > host ? (state.mediaBytes - media) / (state.hostBytes - host) : null;
}

/**
 * Joins several series on one axis, with every x of any series. Series without a point there get
 * null.
 */
export function merge(all: Series[]): { x: number[]; ys: (number | null)[][] } {
    const x = [...new Set(all.flatMap((series) => series.x))].sort((a, b) => a - b);
    const place = new Map(x.map((value, index) => [value, index]));
    const ys = all.map((series) => {
        const y: (number | null)[] = new Array<number | null>(x.length).fill(null);
        series.x.forEach((value, i) => {
            y[place.get(value) as number] = series.y[i] ?? null;
        });
        return y;
    });
    return { x, ys };
}
