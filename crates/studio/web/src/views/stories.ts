// The five stories of the tour: what is run, how fast, and what is said when, about which part of the page.
//
// A story is an Order like any other and captions that wait for a moment of the run, in drive-writes; so what a caption says is there
// to be seen however fast the machine is. Numbers that come out are never written here, the page shows them; that what is said of them is true at
// that moment is tested (e2e/tour.test.mjs), caption by caption. Lanes go by their names: on a phone none is on the left.
import type { Order } from "../wire/messages.ts";

/** A part of the page that a caption points at: an element with this `data-tour`. */
export type Part = "map" | "headline" | "free" | "curves" | "events" | "handles" | "time";

export interface Caption {
    /** Drive-writes from which on it is said. */
    from: number;
    at: Part;
    /** Which lane's part is meant, counted from 0; by default the first. */
    lane?: number;
    text: string;
}

export interface Story {
    name: string;
    title: string;
    question: string;
    /** Its picture in the list: rows of tiles by owner, large letters valid, small ones dead, a point free. */
    motif: string[];
    order: Order;
    /** Drive-writes in a second, so that it takes about a minute. */
    speed: number;
    captions: Caption[];
    /** Where it ends. */
    end: string;
}

function order(experiment: string, device: string, scale: string, write: number, lanes: Order["lanes"]): Order {
    return { experiment, workload: null, device, scale, write, prefill: null, timed: null, seed: 1, lanes, forks: [] };
}

export const STORIES: Story[] = [
    {
        name: "reclaim-unit",
        title: "What a reclaim unit is",
        question: "Why can a drive not simply overwrite?",
        motif: ["BBBBBB", "bbbBBB", "......"],
        order: order("two_stream", "ssd_a", "1/512", 3, [{ name: "two streams, a handle each", only: ["FDP", "sequential 16 and 256 KiB"], set: {} }]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "Each tile is a reclaim unit: what the drive erases as a whole. All of them are free." },
            { from: 0.23, at: "map", text: "A host writes through a reclaim unit handle. The handle has one unit open, framed here. It fills it and takes the next." },
            { from: 0.52, at: "handles", text: "Two streams have a handle each, so there are two colours. A unit holds data of one handle only." },
            { from: 0.77, at: "map", text: "The stream of RUH 1 has come to its end and writes its blocks again. What they held is dead: those units are pale." },
            { from: 1.08, at: "free", text: "Nothing is overwritten in place. New data goes to free units, and they run low." },
            { from: 1.28, at: "free", text: "At the background mark collection begins. The drive erases units, and they are free again." },
            { from: 1.6, at: "map", text: "Both streams write in order, so units die as a whole. A dead unit is erased, and nothing has to be copied." },
            { from: 2.05, at: "headline", text: "So the flash takes what the host writes, and not a byte more. That is a write amplification (WAF) of 1." },
            { from: 2.5, at: "curves", text: "It stays so. Data that dies together makes a flat curve." },
        ],
        end: "A reclaim unit is erased as a whole. That is cheap where all of it is dead. Where it is not, what is valid has to be copied first.",
    },
    {
        name: "mixing",
        title: "Why mixing lifetimes amplifies",
        question: "What happens when short-lived and long-lived data share units?",
        motif: ["BbBBbB", "BBbBbb", "bBBbBB"],
        order: order("two_stream", "ssd_a", "1/512", 3, [
            { name: "FDP", only: ["FDP", "90 % sequential"], set: {} },
            { name: "NoFDP", only: ["NoFDP", "90 % sequential"], set: {} },
        ]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "Two streams on two equal drives: a large one that writes in order, and a small one that writes at random." },
            { from: 0.32, at: "handles", text: "FDP: each stream has a handle. NoFDP: the host says nothing, and one handle takes both." },
            { from: 0.9, at: "map", text: "So far all is valid: each block was written once. Now blocks are written again." },
            { from: 1.12, at: "map", text: "FDP: units of RUH 0, the large stream's, are whole or dead. NoFDP: nearly all units have holes." },
            { from: 1.4, at: "events", text: "To erase a unit with holes the drive first copies what is still valid. A host reads that as Media Reallocated." },
            { from: 1.8, at: "curves", text: "Those copies are writes too. Nobody asked for them, and the two curves part." },
            { from: 2.4, at: "headline", text: "Both hosts wrote the same bytes. The difference is only who shares a unit with whom." },
        ],
        end: "Write amplification is the price of units in which some data outlives the rest.",
    },
    {
        name: "placement",
        title: "FDP, Mixed and NoFDP",
        question: "How much does it matter who gets a handle?",
        motif: ["BBBBBB", "OOooOO", "GGgggg"],
        order: order("three_stream", "ssd_a", "1/512", 3, [
            { name: "FDP", only: ["FDP", "zipf 1.2"], set: {} },
            { name: "Mixed", only: ["Mixed", "zipf 1.2"], set: {} },
            { name: "NoFDP", only: ["NoFDP", "zipf 1.2"], set: {} },
        ]),
        speed: 0.05,
        captions: [
            { from: 0, at: "map", text: "Three streams: one writes in order, one at random. The third overwrites the first one's region, some blocks far more often than others." },
            { from: 0.3, at: "handles", text: "First the drives are filled. FDP and Mixed have a handle for data in order and one for random data. NoFDP has one for all." },
            { from: 0.8, at: "free", text: "Free units run low. At the background mark, the right one, collection begins. At the foreground mark the host waits for it." },
            { from: 1.1, at: "handles", text: "Now the third stream writes. FDP: it has a handle of its own. Mixed: it shares that of the first." },
            { from: 1.6, at: "map", text: "What is copied goes to the shared pool, in grey. The more grey, the more was copied." },
            { from: 1.9, at: "curves", text: "Three drives, three curves. Mixed lies between: two lifetimes share a handle, the third is apart." },
            { from: 2.4, at: "headline", text: "Table 2 of the WARP paper compares these three after four drive-writes. The experiment `three_stream` is all of it." },
        ],
        end: "A handle helps as far as what shares it dies together.",
    },
    {
        name: "isolation",
        title: "II against PI, and the noisy neighbour",
        question: "Does a neighbour's garbage stay the neighbour's?",
        motif: ["BBBSSS", "BBBSsS", "OooOOo"],
        order: order("noisy_neighbour", "ssd_a", "1/2048", 4, [
            { name: "II", only: ["FDP", "noisy"], set: {} },
            { name: "PI", only: ["FDP", "noisy"], set: { "handles.isolation": "persistently_isolated" } },
        ]),
        speed: 0.067,
        captions: [
            { from: 0, at: "map", text: "A cache has a handle for small objects (RUH 1) and one for large (RUH 2). A neighbour writes randomly through RUH 3." },
            { from: 0.4, at: "handles", text: "Initially isolated (II): data is apart when it is written. Persistently isolated (PI): it stays apart when it is copied. So far nothing was." },
            { from: 1.7, at: "map", text: "II: whatever survives a collection goes to the shared pool. Cache and neighbour meet there in the same units." },
            { from: 2.2, at: "map", lane: 1, text: "PI: copies stay with their handle. There is no shared pool, and the neighbour's garbage stays the neighbour's." },
            { from: 2.8, at: "handles", text: "Own WAF is what a handle's data costs. PI shows the whole bill. II shows less: what the shared pool copies again is nobody's." },
            { from: 3.3, at: "headline", text: "In sum the two write nearly the same here. What differs is whose bill it is." },
            { from: 3.6, at: "free", lane: 1, text: "PI keeps a unit open for each handle's copies. Where there is little spare that counts: the experiment `ii_vs_pi` looks for it." },
        ],
        end: "II keeps data apart when it is written, PI also when it is copied.",
    },
    {
        name: "feedback",
        title: "Feedback from events",
        question: "Can a host learn from its drive what it placed wrongly?",
        motif: ["BOBBOB", "BBBBBB", "OOOO.."],
        order: order("event_feedback", "warp_default", "1/16", 4, [
            { name: "nobody listens", only: ["nobody listens"], set: {} },
            { name: "longest run", only: ["longest run"], set: {} },
        ]),
        speed: 0.067,
        captions: [
            { from: 0, at: "map", text: "Hot blocks, warm files and cold files: RUH 0, 1 and 2. A good half of the warm files was given the hot handle by mistake." },
            { from: 0.9, at: "map", text: "Those files lie between hot blocks in the units of RUH 0. Hot blocks die soon, and the files are left to be copied." },
            { from: 1.7, at: "events", text: "The drive tells it: each Media Reallocated event names a block that was moved. Nobody has read them yet." },
            { from: 2.1, at: "events", text: "The host of “longest run” has now read the log, seen which files are named most, and writes them through the warm handle." },
            { from: 2.7, at: "handles", text: "Its next reading has named smaller files, and they move too. Less is left to copy." },
            { from: 3.4, at: "curves", text: "After its third reading nearly nothing is copied any more. Where nobody listens it goes on." },
        ],
        end: "Events make misplacement visible. What to do about it is the host's policy. `warp advise` reads the same log of any drive.",
    },
];
