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
    const files = stored.files.map((file) => `${file.name}, ${bytes(file.bytes)}`).join("; ");
    const at = moment(Math.max(0, ...stored.files.map((file) => file.at_unix_ms)), nowMs);
    return stored.written ? `Stored at ${at}: ${files}.` : `Nothing has changed since the drive was stored at ${at}: ${files}.`;
}

export function resetSentence(sinceUnixMs: number, nowMs: number): string {
    return `Statistics are counted since ${moment(sinceUnixMs, nowMs)} on every page of this drive. Log pages and /metrics go on as before.`;
}

export function faultsSentence(report: FaultsReport | null): string {
    if (report === null || report.faults.length === 0) return "Nothing is to go wrong any more.";
    const count = report.faults.length;
    return `${count === 1 ? "One fault is" : `${grouped(count)} faults are`} armed, with seed ${report.seed}, in place of what was planned before.`;
}
