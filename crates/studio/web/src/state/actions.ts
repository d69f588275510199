// Actions on a served drive, with confirmation, and their results in words.
import { signal } from "@preact/signals";
import type { Checkpoint, FaultsReport } from "../wire/messages.ts";
import { bytes, grouped, moment } from "./numbers.ts";

/** Time in which a second press confirms. */
export const ASKED_MS = 4000;

/** State of a button that needs a second press within a time limit. */
export class Confirmation {
    /** True if the next press confirms. */
    readonly isAsked = signal(false);
    private timer: ReturnType<typeof setTimeout> | undefined;

    /** Returns true if this press is the second one, which confirms the action. */
    press(): boolean {
        const isSecond = this.isAsked.value;
        this.forget();
        if (isSecond) return true;
        this.isAsked.value = true;
        this.timer = setTimeout(() => this.forget(), ASKED_MS);
        return false;
    }

    /** Resets the button. */
    forget(): void {
        clearTimeout(this.timer);
        this.isAsked.value = false;
    }
}

export function snapshotSentence(stored: Checkpoint, nowMs: number): string {
    const files = stored.files.map((file) => `${file.name} (${bytes(file.bytes)})`).join(", ");
    const at = moment(Math.max(0, ...stored.files.map((file) => file.at_unix_ms)), nowMs);
    return stored.written ? `The drive was stored at ${at} in ${files}.` : `The drive has not changed since it was stored at ${at} in ${files}.`;
}

export function resetSentence(sinceUnixMs: number, nowMs: number): string {
    return `The statistics on all pages of this drive start at ${moment(sinceUnixMs, nowMs)}. Log pages and /metrics are not reset.`;
}

export function faultsSentence(report: FaultsReport | null): string {
    if (report === null || report.faults.length === 0) return "All faults are cleared.";
    const count = report.faults.length;
    return `${count === 1 ? "One fault is" : `${grouped(count)} faults are`} planned with seed ${report.seed}, instead of the previous plan.`;
}
