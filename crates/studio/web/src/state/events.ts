// Events of a drive in words, and the FDP events that a host reads.
import { CLOSE_REASONS, RECLAIM_CAUSES, type FrameEvent } from "../wire/frame.ts";
import type { Lane } from "../wire/messages.ts";
import { grouped, percent } from "./numbers.ts";

/** FDP event that the host reads, with name and type, or null if the drive does not report it. */
export function hostEvent(event: FrameEvent, lane: Lane): { name: string; type: string } | null {
    switch (event.kind) {
        case "reclaim":
            // No data was reallocated if all blocks were remapped, or no page was valid.
            return event.copiedPages > 0 ? { name: "Media Reallocated", type: "80h" } : null;
        case "close": {
            const reason = CLOSE_REASONS[event.why];
            if (reason === "host update") return { name: "Reclaim Unit Not Fully Written To Capacity", type: "00h" };
            const isHandle = lane.owners[event.owner]?.isolation !== null;
            return reason === "room needed" && isHandle ? { name: "Implicitly Modified Reclaim Unit Handle", type: "81h" } : null;
        }
        default:
            return null;
    }
}

export function ownerName(lane: Lane, owner: number): string {
    return lane.owners[owner]?.name ?? "no owner";
}

/** Describes an event in one sentence. */
export function sentence(event: FrameEvent, lane: Lane): string {
    const owner = ownerName(lane, event.owner);
    switch (event.kind) {
        case "open":
            return `${owner} opens unit ${event.unit}`;
        case "close":
            return `${owner} closes unit ${event.unit} (${CLOSE_REASONS[event.why] ?? "unknown reason"})`;
        case "redirect":
            return `${grouped(event.pages)} pages of ${owner} go to another reclaim group, because theirs is full`;
        case "reclaim": {
            const cause = RECLAIM_CAUSES[event.why] ?? "unknown cause";
            const begin = `unit ${event.unit} of ${owner} reclaimed (${cause})`;
            if (event.copiedPages === 0) return `${begin}, no pages copied`;
            const where = event.destination === null ? ownerName(lane, event.destinationOwner) : `unit ${event.destination} (${ownerName(lane, event.destinationOwner)})`;
            return `${begin}, ${percent(event.copiedPages / Math.max(1, event.pages))} of it copied to ${where}`;
        }
    }
}
