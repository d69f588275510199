// The five stories of the tour: what is run, how fast, and what is said when, about which part of the page.
//
// A story is an Order like any other and captions that wait for a moment of the run, in drive-writes; so what a caption says is there
// to be seen however fast the machine is. Numbers are never written here: the page shows those that come out.
import type { Order } from "../wire/messages.ts";

/** A part of the page that a caption points at: an element with this `data-tour`. */
export type Part = "map" | "headline" | "free" | "curves" | "events" | "handles" | "time";

export interface Caption {
    /** Drive-writes from which on it is said. */
    from: number;
    at: Part;
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
            { from: 0, at: "map", text: "Each tile is a reclaim unit: what the drive erases as a whole. All are free." },
            { from: 0.25, at: "map", text: "A host writes through a reclaim unit handle. The handle has one unit open, framed here, fills it and takes the next." },
            { from: 0.62, at: "handles", text: "Two streams, two handles, two colours. A unit holds data of one handle only." },
            { from: 0.9, at: "free", text: "Nothing can be overwritten in place: new data goes to free units, and free ones run low." },
            { from: 1.2, at: "map", text: "Now old data is written again. What was there before dies where it lies: the strong colour sinks, the pale rest is dead." },
            { from: 1.6, at: "map", text: "Both streams write in order, so whole units die. A dead unit is erased and is free again, and nothing has to be copied." },
            { from: 2.05, at: "headline", text: "So the flash takes what the host writes, and hardly more. That is a write amplification of 1." },
            { from: 2.5, at: "curves", text: "It stays there: the curve of a drive whose data dies together is a flat one." },
        ],
        end: "A reclaim unit is erased as a whole. It is free for nothing only when all of it is dead.",
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
            { from: 0, at: "map", text: "The same two streams on the same drive, twice: a large one that writes in order, a small one that writes at random." },
            { from: 0.32, at: "handles", text: "On the left each has a handle. On the right the host says nothing, and one handle takes both." },
            { from: 0.8, at: "map", text: "Both drives are nearly full. Compare what the tiles look like from now on." },
            { from: 1.1, at: "map", text: "Left, units are either alive or dead. Right, every unit is a little of both: the random stream has punched holes into it." },
            { from: 1.4, at: "events", text: "To erase such a unit the drive must first copy what is still valid. A host reads it as Media Reallocated." },
            { from: 1.8, at: "curves", text: "Those copies are writes as well. Nobody asked for them, and the two curves part." },
            { from: 2.4, at: "headline", text: "Same bytes from the host. The difference is only who shares a unit with whom." },
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
            { from: 0, at: "map", text: "Three streams: one in order, one at random, and one that overwrites the first one's region, some blocks far more often than others." },
            { from: 0.3, at: "handles", text: "FDP: a handle for each. Mixed: the overwriting stream shares the first one's. NoFDP: no directives at all." },
            { from: 0.9, at: "free", text: "When free units reach the background mark, collection begins; at the foreground mark the host waits for it." },
            { from: 1.2, at: "map", text: "What is copied goes to the shared pool, in grey. The more grey, the more was copied." },
            { from: 1.7, at: "curves", text: "Three drives, three curves. Mixed lies between: two lifetimes in one handle, the third apart." },
            { from: 2.4, at: "headline", text: "This is Table 2 of the WARP paper in the making: the experiment three_stream is the whole of it." },
        ],
        end: "A handle helps as far as what shares it dies together.",
    },
    {
        name: "isolation",
        title: "II against PI, and the noisy neighbour",
        question: "Does a neighbour's garbage stay the neighbour's?",
        motif: ["BBBSSS", "BBBSsS", "OooOOo"],
        order: order("noisy_neighbour", "ssd_a", "1/1024", 4, [
            { name: "II", only: ["FDP", "noisy"], set: {} },
            { name: "PI", only: ["FDP", "noisy"], set: { "handles.isolation": "persistently_isolated" } },
        ]),
        speed: 0.067,
        captions: [
            { from: 0, at: "map", text: "A cache with three handles, and on the rest of the drive a neighbour that writes 4 KiB at random through a fourth." },
            { from: 0.4, at: "handles", text: "Initially isolated (II): host data is apart when it is written. Persistently isolated (PI): it stays apart when it is copied." },
            { from: 1.1, at: "map", text: "Left, all that survives a collection meets in the shared pool, cache and neighbour in the same units." },
            { from: 1.6, at: "map", text: "Right, copies stay with their handle. The neighbour's garbage is the neighbour's, and so is its amplification." },
            { from: 2.2, at: "handles", text: "Read the last column: what each handle's own data costs. On the left the shared pool has a bill that is nobody's." },
            { from: 3.0, at: "curves", text: "Which of them writes less depends on the spare: PI needs a unit more for each handle's copies." },
            { from: 3.5, at: "headline", text: "The experiment ii_vs_pi finds where they cross. Fork here with another over-provisioning to look for it." },
        ],
        end: "II keeps data apart once, PI for good; both pay with open units.",
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
            { from: 0, at: "map", text: "Hot blocks, warm files, cold files, each with a handle. A quarter of the files was given the hot handle by mistake." },
            { from: 0.9, at: "map", text: "Their large blocks lie between hot ones. Whenever a hot unit is collected, they are copied." },
            { from: 1.4, at: "events", text: "The drive tells: each Media Reallocated event names a block that was moved. On the left nobody reads the log." },
            { from: 2.1, at: "events", text: "On the right a host has read it, seen which files are named most, and writes them through the warm handle from now on." },
            { from: 2.7, at: "handles", text: "The next readings name the smaller files. Each moves, and less is left to copy." },
            { from: 3.3, at: "curves", text: "Look at the last drive-write: copying comes to an end on the right." },
        ],
        end: "Events make misplacement visible. What to do about it is the host's policy; `warp advise` reads the same log of any drive.",
    },
];
