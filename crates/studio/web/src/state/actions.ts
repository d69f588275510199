// Actions on a served drive: asked twice, and what came of them in words.
import { signal } from "@preact/signals";
import type { Checkpoint, FaultsReport } from "../wire/messages.ts";
import { bytes, grouped, moment } from "./numbers.ts";

/** How long a question stands. */
export const ASKED_MS = 4000;

/** A button that has to be pressed twice, the second time soon. */
export class Confirmation {
    /** Whether the next press counts. */
    readonly isAsked = signal(false);
    private timer: ReturnType<typeof setTimeout> | undefined;

    /** Whether this press is the second one, so that it is to be done. */
    press(): boolean {
        const isSecond = this.isAsked.value;
        this.forget();
        if (isSecond) return true;
        this.isAsked.value = true;
        this.timer = setTimeout(() => this.forget(), ASKED_MS);
        return false;
    }

    /** As if it had not been pressed. */
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
