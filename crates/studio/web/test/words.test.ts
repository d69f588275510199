import { describe, expect, it } from "vitest";
import { hostEvent, sentence } from "../src/state/events.ts";
import { freeName, nameOf, readSetting } from "../src/state/knobs.ts";
import { bytes, capacities, grouped, percent, rate, short, time, waf } from "../src/state/numbers.ts";
import { OKABE_ITO, SHARED, TOL_LIGHT, ownerColours } from "../src/map/palette.ts";
import { STORIES } from "../src/views/stories.ts";
import { waitMs } from "../src/wire/live.ts";
import type { FrameEvent } from "../src/wire/frame.ts";
import { lane } from "./sample.ts";

describe("numbers", () => {
    it("are written as everywhere in the project", () => {
        expect([waf(1.0404), waf(null), bytes(7.68e12), bytes(1 << 30), bytes(0)]).toEqual(["1.040", "–", "6.98\u00a0TiB", "1\u00a0GiB", "0\u00a0B"]);
        expect([rate(527e6), percent(0.9369), percent(0), percent(0.0004), percent(1), capacities(0.001), capacities(2.2)]).toEqual(["527\u00a0MB/s", "93.7\u00a0%", "0\u00a0%", "<0.1\u00a0%", "100\u00a0%", "<0.01", "2.20"]);
        expect([time(81_000), time(1_234_000_000), time(7), grouped(1234567), short(12_300_000)]).toEqual(["81\u00a0µs", "1.23\u00a0s", "7\u00a0ns", "1\u202f234\u202f567", "12.3\u00a0M"]);
    });
});

const event = (more: Partial<FrameEvent>): FrameEvent => ({ kind: "reclaim", owner: 0, why: 0, destinationOwner: 2, unit: 5, pages: 100, validPages: 40, copiedPages: 40, destination: 9, hostBytes: 0, nowNs: 0, ...more });

describe("events", () => {
    it("are those that a host reads in its log", () => {
        const names = [event({}), event({ copiedPages: 0 }), event({ kind: "close", why: 1 }), event({ kind: "close", why: 2 }), event({ kind: "close", why: 2, owner: 2 }), event({ kind: "close", why: 0 }), event({ kind: "open" })].map((one) => hostEvent(one, lane())?.type ?? null);
        expect(names).toEqual(["80h", null, "00h", "81h", null, null, null]);
    });
    it("are sentences", () => {
        expect(sentence(event({}), lane())).toBe("unit 5 of RUH 0 reclaimed (background), 40.0\u00a0% of it copied to unit 9 (shared pool)");
        expect(sentence(event({ copiedPages: 0, why: 1 }), lane())).toBe("unit 5 of RUH 0 reclaimed (foreground), no pages copied");
        expect(sentence(event({ kind: "close", why: 3, owner: 77 }), lane())).toBe("no owner closes unit 5 (isolation changed)");
    });
});

describe("settings", () => {
    it("are read as what they are", () => {
        expect([readSetting("0.28"), readSetting("true"), readSetting("fifo"), readSetting(" 256MiB "), readSetting("")]).toEqual([0.28, true, "fifo", "256MiB", ""]);
    });
    it("have short names, of which no two are the same in a session", () => {
        expect([nameOf({ "geometry.over_provisioning": 0.28 }), nameOf({ "handles.isolation": "persistently_isolated" }), nameOf({ "gc.victim_policy": { d_choices: 8 } }), nameOf({ "gc.background_watermark": 0.8 })]).toEqual(["OP 28 %", "PI", "best of 8 (d-choices)", "background_watermark 0.8"]);
        expect([freeName("PI", ["II"]), freeName("PI", ["PI", "PI 2"])]).toEqual(["PI", "PI 3"]);
    });
});

describe("colours", () => {
    it("are those of the figures, and the shared pool is grey", () => {
        const owners = [...Array.from({ length: 8 }, (_, handle) => ({ name: `RUH ${handle}`, isolation: "II" })), { name: "shared pool", isolation: null }];
        expect(ownerColours(owners, 3).slice(0, 3)).toEqual(OKABE_ITO.slice(0, 3));
        expect(ownerColours(owners, 8).slice(0, 8)).toEqual(TOL_LIGHT);
        expect([ownerColours(owners, 3)[8], ownerColours(owners, 8)[8]]).toEqual([SHARED, SHARED]);
    });
});

describe("waiting", () => {
    it("grows and has an end", () => {
        expect([waitMs(0), waitMs(1), waitMs(50)]).toEqual([300, 510, 8000]);
    });
});

describe("stories", () => {
    it("take about a minute, and their captions come in order before the end", () => {
        for (const story of STORIES) {
            const seconds = (story.order.drive_writes ?? 0) / story.speed;
            expect(seconds).toBeGreaterThan(45);
            expect(seconds).toBeLessThan(75);
            const moments = story.captions.map((caption) => caption.from);
            expect([...moments].sort((a, b) => a - b)).toEqual(moments);
            expect(moments.at(-1)).toBeLessThan(story.order.drive_writes ?? 0);
            // The usual reading speed is four words per second.
            story.captions.forEach((caption, index) => {
                const until = story.captions[index + 1]?.from ?? story.order.drive_writes ?? 0;
                expect((until - caption.from) / story.speed, caption.text).toBeGreaterThan(caption.text.split(" ").length / 4);
            });
        }
    });
});
