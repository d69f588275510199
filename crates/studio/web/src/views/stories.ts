// The five stories of the tour, with runs, speeds and captions.
//
// A story has a normal session order, and captions that appear after a number of drive writes. So
// the captions match the run on any machine. Captions contain no measured numbers, because the page
// shows them. e2e/tour.test.mjs tests each statement at its position. Captions name lanes, because
// a phone shows no left and right.
import type { Order } from "../wire/messages.ts";

/** Part of the page that a caption describes, an element with this `data-tour`. */
export type Part = "map" | "headline" | "free" | "curves" | "events" | "handles" | "time";

export interface Caption {
    /** Drive writes after which the caption appears. */
    from: number;
    at: Part;
    /** Index of the described lane, 0 by default. */
    lane?: number;
    text: string;
}

export interface Story {
    name: string;
    title: string;
    question: string;
    /**
     * Picture in the list, as rows of tiles by owner. Capital letters are valid, small letters
     * invalid, points free.
     */
    motif: string[];
    order: Order;
    /** Drive writes per second, for a run of about a minute. */
    speed: number;
    captions: Caption[];
    /** Text at the end of the story. */
    end: string;
}

function order(experiment: string, device: string, scale: string, drive_writes: number, lanes: Order["lanes"]): Order {
    return { experiment, workload: null, device, scale, drive_writes, precondition_drive_writes: null, timed: null, seed: 1, lanes, forks: [] };
}

export const STORIES: Story[] = [
    {
        name: "reclaim-unit",
        title: "Reclaim units",
        question: "Why can a drive not overwrite data in place?",
        motif: ["BBBBBB", "bbbBBB", "......"],
        order: order("two_stream", "ssd_a", "1/512", 3, [{ name: "two streams, a handle each", variants: ["FDP", "sequential 16 and 256 KiB"], set: {} }]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "Each tile is a reclaim unit, which the drive erases as a whole. All are free." },
            { from: 0.23, at: "map", text: "A host writes through a reclaim unit handle. The handle fills its open unit, framed here, and takes the next." },
            { from: 0.52, at: "handles", text: "Two streams have a handle and a colour each. A unit holds data of one handle." },
            { from: 0.77, at: "map", text: "The stream of RUH 1 overwrites its blocks now. Their old data is invalid, so these units turn pale." },
            { from: 1.08, at: "free", text: "The drive never overwrites in place. New data takes free units, so these run low." },
            { from: 1.28, at: "free", text: "Garbage collection begins at the background watermark. The drive erases units and thereby frees them." },
            { from: 1.6, at: "map", text: "Both streams write in order, so units become invalid as a whole. The drive erases them without a copy." },
            { from: 2.05, at: "headline", text: "The flash therefore stores exactly the writes of the host. The write amplification (WAF) is 1." },
            { from: 2.5, at: "curves", text: "The curve stays flat, because the data of a unit becomes invalid at the same time." },
        ],
        end: "The drive erases a reclaim unit as a whole. This is cheap if all its data is invalid. Valid data must be copied first.",
    },
    {
        name: "mixing",
        title: "Why mixed lifetimes amplify writes",
        question: "What happens when short-lived and long-lived data share units?",
        motif: ["BbBBbB", "BBbBbb", "bBBbBB"],
        order: order("two_stream", "ssd_a", "1/512", 3, [
            { name: "FDP", variants: ["FDP", "90 % sequential"], set: {} },
            { name: "NoFDP", variants: ["NoFDP", "90 % sequential"], set: {} },
        ]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "Two equal drives receive the same two streams. A large stream writes in order, a small one at random." },
            { from: 0.32, at: "handles", text: "With FDP, each stream has a handle. With NoFDP, one handle takes both streams." },
            { from: 0.9, at: "map", text: "So far each block was written once, so all data is valid. Now the overwrites begin." },
            { from: 1.12, at: "map", text: "With FDP, units of RUH 0 (large stream) are valid or invalid as a whole. With NoFDP, nearly all are mixed." },
            { from: 1.4, at: "events", text: "To erase a mixed unit, the drive first copies its valid data. The host sees the event Media Reallocated." },
            { from: 1.8, at: "curves", text: "Each copy is an additional write to flash, so the two curves diverge." },
            { from: 2.4, at: "headline", text: "Both hosts wrote the same number of bytes. Only the assignment of data to units differs." },
        ],
        end: "Write amplification is the cost of units whose data has different lifetimes.",
    },
    {
        name: "placement",
        title: "FDP, Mixed and NoFDP",
        question: "How much does the assignment of handles matter?",
        motif: ["BBBBBB", "OOooOO", "GGgggg"],
        order: order("three_stream", "ssd_a", "1/512", 3, [
            { name: "FDP", variants: ["FDP", "zipf 1.2"], set: {} },
            { name: "Mixed", variants: ["Mixed", "zipf 1.2"], set: {} },
            { name: "NoFDP", variants: ["NoFDP", "zipf 1.2"], set: {} },
        ]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "One stream writes in order, one at random. The third overwrites the region of the first, some blocks far more often." },
            { from: 0.3, at: "handles", text: "The drives are filled first. FDP and Mixed use one handle for sequential and one for random data. NoFDP uses a single handle." },
            { from: 0.8, at: "free", text: "Free units run low. Collection begins at the background watermark (right). At the foreground watermark, host writes wait." },
            { from: 1.1, at: "handles", text: "Now the third stream writes. With FDP it has its own handle. With Mixed it shares the handle of the first stream." },
            { from: 1.6, at: "map", text: "The drive copies valid data to the shared pool, in grey. More grey means more copies." },
            { from: 1.9, at: "curves", text: "The curves of the three drives differ. Mixed is in the middle, because only two of its three lifetimes share a handle." },
            { from: 2.4, at: "headline", text: "Table 2 of the WARP paper compares these three after four full drive writes. The experiment `three_stream` reproduces the complete table." },
        ],
        end: "A handle helps if all its data becomes invalid at about the same time.",
    },
    {
        name: "isolation",
        title: "II against PI, and the noisy neighbour",
        question: "Does a noisy neighbour affect the units of a cache?",
        motif: ["BBBSSS", "BBBSsS", "OooOOo"],
        order: order("noisy_neighbour", "ssd_a", "1/2048", 4, [
            { name: "II", variants: ["FDP", "noisy"], set: {} },
            { name: "PI", variants: ["FDP", "noisy"], set: { "handles.isolation": "persistently_isolated" } },
        ]),
        speed: 0.067,
        captions: [
            { from: 0, at: "map", text: "A cache uses RUH 1 for small and RUH 2 for large objects. A neighbour writes randomly through RUH 3." },
            { from: 0.4, at: "handles", text: "Initially isolated (II) handles separate data when the host writes it. Persistently isolated (PI) handles also separate the copies. No data was copied yet." },
            { from: 1.7, at: "map", text: "With II, data that survives a collection moves to the shared pool. Cache and neighbour share units there." },
            { from: 2.2, at: "map", lane: 1, text: "With PI, copies stay with their handle. The drive needs no shared pool, so cache and neighbour never share units." },
            { from: 2.8, at: "handles", text: "The own WAF is the cost of a handle's data. With PI it counts all copies. With II it omits copies out of the shared pool." },
            { from: 3.3, at: "headline", text: "In total, both drives write nearly the same. They differ in the copies that each handle shows." },
            { from: 3.6, at: "free", lane: 1, text: "PI keeps a unit open for each handle's copies. This matters with little over-provisioning. The experiment `ii_vs_pi` measures the effect." },
        ],
        end: "II separates data when the host writes it. PI also separates the copies.",
    },
    {
        name: "feedback",
        title: "Feedback from events",
        question: "Can a host learn from its drive which data it misplaced?",
        motif: ["BOBBOB", "BBBBBB", "OOOO.."],
        order: order("event_feedback", "warp_default", "1/16", 4, [
            { name: "nobody listens", variants: ["nobody listens"], set: {} },
            { name: "longest run", variants: ["longest run"], set: {} },
        ]),
        speed: 0.067,
        captions: [
            { from: 0, at: "map", text: "Hot blocks use RUH 0, warm files RUH 1 and cold files RUH 2. By mistake, about half of the warm files use the hot handle." },
            { from: 0.9, at: "map", text: "These files lie between hot blocks in the units of RUH 0. Hot blocks soon become invalid, so the drive copies the files." },
            { from: 1.7, at: "events", text: "The drive reports this. Each Media Reallocated event names a block that moved. No host has read the events yet." },
            { from: 2.1, at: "events", text: "The host of “longest run” has read the log now. It writes the files with the most events through the warm handle." },
            { from: 2.7, at: "handles", text: "Its next reading found smaller files, which move too. The drive copies less." },
            { from: 3.4, at: "curves", text: "After the third reading, the drive copies almost no data. The other drive continues to copy." },
        ],
        end: "Events show misplaced data, and the policy of the host decides about the remedy. `warp drive advise` reads the same log of any drive.",
    },
];
