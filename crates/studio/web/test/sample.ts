// Sample lane and frames for the tests.
import type { FrameParts } from "../src/wire/frame.ts";
import type { Lane } from "../src/wire/messages.ts";

export function parts(more: Partial<FrameParts>): FrameParts {
    return {
        lane: 0,
        phase: "running",
        whole: false,
        freeUnits: 21,
        hostBytes: 22,
        mediaBytes: 23,
        filledBytes: 24,
        nowNs: 25,
        collections: 26,
        requests: 27,
        eventsLeftOut: 28,
        pagesPerSecond: 29,
        owners: [],
        units: [],
        events: [],
        samples: [],
        ...more,
    };
}

export function lane(more: Partial<Lane> = {}): Lane {
    return {
        name: "FDP",
        device: "ssd_a",
        workload: "three_stream",
        scale: "1/512",
        seed: 1,
        of: null,
        forked: null,
        page_bytes: 4096,
        capacity_bytes: 1000,
        physical_bytes: 1200,
        unit_pages: 100,
        units: 12,
        superblocks: 12,
        groups: 2,
        owners: [
            { name: "RUH 0", isolation: "II" },
            { name: "RUH 1", isolation: "II" },
            { name: "shared pool", isolation: null },
        ],
        placements: ["hot", "cold"],
        marks: { background_free_units: 3, foreground_free_units: 1 },
        timed: false,
        write_bytes: 3000,
        settings: {},
        ...more,
    };
}
