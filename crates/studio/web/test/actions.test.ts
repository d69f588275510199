import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ASKED_MS, Confirmation, faultsSentence, resetSentence, snapshotSentence } from "../src/state/actions.ts";
import { headline } from "../src/state/headline.ts";
import { LaneState } from "../src/state/lane.ts";
import { moment } from "../src/state/numbers.ts";
import { unwatchedSentence } from "../src/state/unwatched.ts";
import { Api, ApiError } from "../src/wire/api.ts";
import type { Checkpoint } from "../src/wire/messages.ts";
import { lane } from "./sample.ts";

describe("a button that asks once more", () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());
    it("does it at the second press", () => {
        const confirmation = new Confirmation();
        expect([confirmation.press(), confirmation.isAsked.value]).toEqual([false, true]);
        expect([confirmation.press(), confirmation.isAsked.value]).toEqual([true, false]);
        expect(confirmation.press()).toBe(false);
    });
    it("forgets the first one after a while, or when it is left", () => {
        const confirmation = new Confirmation();
        confirmation.press();
        vi.advanceTimersByTime(ASKED_MS - 1);
        expect(confirmation.isAsked.value).toBe(true);
        vi.advanceTimersByTime(1);
        expect([confirmation.isAsked.value, confirmation.press()]).toEqual([false, false]);
        confirmation.forget();
        expect(confirmation.press()).toBe(false);
        // The time limit of the question that was reset does not apply to this one.
        vi.advanceTimersByTime(ASKED_MS - 1);
        expect(confirmation.press()).toBe(true);
    });
});

const at = new Date(2026, 10, 25, 12, 3, 4).getTime();
const stored = (more: Partial<Checkpoint>): Checkpoint => ({
    written: true,
    files: [
        { name: "drive.img.ftl", bytes: 3 << 20, at_unix_ms: at - 7000 },
        { name: "drive.img.state", bytes: 1200, at_unix_ms: at },
    ],
    ...more,
});

describe("what came of an action", () => {
    it("is said with the time of the newest file", () => {
        expect(snapshotSentence(stored({}), at)).toBe("The drive was stored at 12:03:04 in drive.img.ftl (3\u00a0MiB), drive.img.state (1.17\u00a0KiB).");
        expect(snapshotSentence(stored({ written: false }), at + 86_400_000)).toBe("The drive has not changed since it was stored at 2026-11-25 12:03:04 in drive.img.ftl (3\u00a0MiB), drive.img.state (1.17\u00a0KiB).");
        expect(resetSentence(at, at)).toMatch(/^The statistics on all pages of this drive start at 12:03:04\./);
        expect(moment(at, at - 43_500_000)).toBe("2026-11-25 12:03:04");
    });
    it("is how many faults there are", () => {
        const fault = { name: "a", kind: "error", active: true, struck: 0 };
        expect(faultsSentence(null)).toBe("All faults are cleared.");
        expect(faultsSentence({ seed: 7, commands: 0, faults: [fault] })).toMatch(/^One fault is planned with seed 7,/);
        expect(faultsSentence({ seed: 7, commands: 0, faults: [fault, fault] })).toMatch(/^2 faults are planned/);
    });
    it("does not hide what was written while nobody watched", () => {
        const before = { from_host_bytes: 0, to_host_bytes: 1320, media_bytes: 1650, collections: 1234, until_unix_ms: at };
        expect(unwatchedSentence(before, 1000, at)).toBe("The drive was not monitored before 12:03:04, so the curves begin there. Earlier, hosts wrote 1.32 drive writes, with a WAF of 1.250 and 1\u202f234\u00a0collections. The flat line shows this average.");
        expect(unwatchedSentence({ ...before, from_host_bytes: 320 }, 1000, at)).toMatch(/^The drive was not monitored until 12:03:04, so the curves continue there. In the gap, hosts wrote 1.00 /);
    });
    it("is a drive of which nothing is counted yet", () => {
        expect(headline([new LaneState(lane())], [], true)?.sentence).toBe("No host has written data yet.");
    });
});

describe("a refusal", () => {
    afterEach(() => void vi.unstubAllGlobals());
    const refused = async (status: number, body: unknown) => {
        vi.stubGlobal("fetch", async () => new Response(JSON.stringify(body), { status }));
        const error = await new Api("http://127.0.0.1:1", "token").planFaults("x").catch((problem: unknown) => problem);
        expect(error).toBeInstanceOf(ApiError);
        const { status: told, message, line } = error as ApiError;
        return [told, message, line];
    };
    it("has the server's sentence, and its line if it is about one", async () => {
        expect(await refused(400, { error: "line 3: no", line: 3 })).toEqual([400, "line 3: no", 3]);
        expect(await refused(429, { error: "too often" })).toEqual([429, "too often", null]);
        expect(await refused(400, { error: "no", line: null })).toEqual([400, "no", null]);
        expect(await refused(500, [])).toEqual([500, "The server answered 500 to POST /api/drive/faults.", null]);
    });
});
