// Headline of a session, computed from the current numbers.
import type { OrderFork } from "../wire/messages.ts";
import type { LaneState } from "./lane.ts";
import { waf } from "./numbers.ts";
import { wafSince } from "./series.ts";

/**
 * Relative difference below which two numbers count as equal, because their displayed digits do not
 * show it.
 */
const SAME = 0.0005;

export interface Headline {
    /** Displayed number, a difference or the write amplification of the only lane. */
    figure: string;
    sentence: string;
}

function difference(share: number): string {
    const of100 = Math.abs(share) * 100;
    return of100 >= 10 ? of100.toFixed(0) : of100.toFixed(1);
}

/** Flash writes of lane `one` relative to lane `other`, per byte written by the host. */
function between(one: LaneState, other: LaneState, ofOne: number, ofOther: number, since: string): Headline {
    const share = ofOne / ofOther - 1;
    const numbers = `(WAF ${waf(ofOne)} against ${waf(ofOther)})`;
    if (Math.abs(share) < SAME) return { figure: "±0\u00a0%", sentence: `${one.lane.name} and ${other.lane.name} write the same to the flash${since} ${numbers}.` };
    const word = share < 0 ? "less" : "more";
    return { figure: `${share < 0 ? "−" : "+"}${difference(share)}\u00a0%`, sentence: `${one.lane.name} writes ${difference(share)}\u00a0% ${word} to the flash than ${other.lane.name}${since} ${numbers}.` };
}

/**
 * Compares a fork with its parent since the fork. Otherwise compares the lanes with the lowest and
 * the highest write amplification.
 */
export function headline(lanes: LaneState[], forks: OrderFork[], isDrive = false): Headline | null {
    const first = lanes[0];
    if (first === undefined) return null;
    if (lanes.every((state) => state.phase === "filling" || (state.phase === "waiting" && state.hostBytes === 0)) && lanes.some((state) => state.phase === "filling")) {
        return { figure: "–", sentence: "The drive is being filled before the measurement." };
    }
    const newest = lanes.at(-1);
    if (newest !== undefined && newest.lane.of !== null) {
        const parent = lanes[newest.lane.of];
        const fork = forks.at(-1);
        const from = fork?.at_host_bytes ?? 0;
        const ofFork = wafSince(newest, from);
        const ofParent = parent === undefined ? null : wafSince(parent, from);
        if (parent !== undefined && ofFork !== null && ofParent !== null) return between(newest, parent, ofFork, ofParent, from > 0 ? " since the fork" : "");
        return { figure: "–", sentence: `${newest.lane.name} is forked from ${parent?.lane.name ?? "the first lane"}. Press play to see the difference.` };
    }
    const known = lanes.filter((state) => state.waf !== null);
    if (known.length === 0) return { figure: "–", sentence: isDrive ? "No host has written data yet." : "The run has written no data yet. Press play." };
    if (known.length === 1) {
        const state = known[0] as LaneState;
        const value = state.waf as number;
        if (state.collections === 0) return { figure: waf(value), sentence: "No garbage was collected yet, so the flash stores exactly the writes of the host." };
        return { figure: waf(value), sentence: `The drive wrote ${waf(value)} bytes to flash for each byte of the host.` };
    }
    const sorted = [...known].sort((a, b) => (a.waf as number) - (b.waf as number));
    const least = sorted[0] as LaneState;
    const most = sorted.at(-1) as LaneState;
    return between(least, most, least.waf as number, most.waf as number, " so far");
}
