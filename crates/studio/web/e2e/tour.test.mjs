// Checks each statement of the tour's captions at its position in the run.
//
//   stories.ts -> order -> real server -> seek to the caption's position -> frames -> LaneState
//     -> claims of the caption
//
// The page's own code reads the frames, so the tests see the values that a reader sees. Seeds are
// fixed and runs are exact, so a result never varies. Each caption has its claims here. A new or
// moved caption without claims fails.
//
//   node --test e2e/tour.test.mjs            TELL=1 prints the values at each position
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { after, before, test } from "node:test";
import { createServer } from "vite";
import { PATIENCE_MS, Server } from "./host.mjs";

const { WebSocket } = createRequire(import.meta.url)("ws");

/** Numbers of a lane that captions mention. */
function numbersOf(lane, { windowed, pointsOfLane }) {
    const { capacity_bytes: capacity, page_bytes: page } = lane.lane;
    const handles = lane.lane.owners.map((owner, index) => ({ ...lane.owners[index], name: owner.name, isPool: owner.isolation === null, open: 0, whole: 0, dead: 0, holed: 0, ownWaf: lane.ownerWaf(index), copied: lane.owners[index].copiedOut * page }));
    for (let unit = 0; unit < lane.lane.units; unit += 1) {
        const handle = handles[lane.owner[unit]];
        if (handle === undefined) continue;
        const share = lane.valid[unit] / lane.pagesOf(unit);
        if (lane.state[unit] !== 3) handle.open += 1;
        else if (share > 0.97) handle.whole += 1;
        else if (share < 0.03) handle.dead += 1;
        else handle.holed += 1;
    }
    const used = handles.filter((handle) => !handle.isPool && handle.hostBytes > 0);
    const sum = (what) => handles.reduce((total, handle) => total + handle[what], 0);
    return {
        waf: lane.waf,
        lately: windowed(pointsOfLane(lane), capacity, 0.1 * capacity).y.at(-1),
        host: lane.hostBytes,
        media: lane.mediaBytes,
        free: lane.freeUnits,
        units: lane.lane.superblocks,
        marks: lane.lane.marks,
        collections: lane.collections,
        used: used.map((handle) => handle.name),
        handle: Object.fromEntries(used.map((handle) => [handle.name, handle])),
        pool: handles.find((handle) => handle.isPool),
        copied: sum("copied"),
        open: sum("open"),
        closed: { whole: sum("whole"), dead: sum("dead"), holed: sum("holed") },
        validShare: handles.reduce((total, handle) => total + handle.validPages, 0) / Math.max(1, sum("units") * lane.unitPages),
        reallocated: lane.events.filter((event) => event.kind === "reclaim" && event.copiedPages > 0).length,
    };
}

const share = (part) => part.holed / (part.whole + part.dead + part.holed);

/**
 * Claims by story and caption. A claim receives the lanes at the caption, and the lanes at the
 * previous caption.
 */
const CLAIMS = {
    "reclaim-unit": [
        ([one]) => assert.ok(one.free >= one.units - 1 && one.validShare < 0.01, "all are free"),
        ([one]) => assert.ok(Object.values(one.handle).every((handle) => handle.open === 1), "a handle has one unit open"),
        ([one]) => assert.deepEqual(one.used, ["RUH 0", "RUH 1"]),
        ([one], [before]) => {
            assert.ok(before.closed.dead === 0 && one.handle["RUH 1"].dead > 50, "units of RUH 1 have died since");
            assert.equal(one.handle["RUH 0"].dead, 0, "those of RUH 0 have not");
        },
        ([one], [before]) => assert.ok(one.free < before.free && one.free < 0.25 * one.units && one.collections === 0, "free units run low"),
        ([one]) => assert.ok(one.collections > 0 && one.free <= one.marks.background_free_units + 1, "collection has begun"),
        ([one], [before]) => {
            assert.ok(one.collections > before.collections && one.copied === 0, "units are erased and nothing is copied");
            assert.ok(one.closed.holed <= 2, "units die as a whole");
        },
        ([one]) => assert.equal(one.media, one.host, "not a byte more"),
        ([one]) => assert.equal(one.lately, 1, "a flat curve"),
    ],
    mixing: [
        ([fdp, no]) => assert.equal(fdp.units, no.units, "equal drives"),
        ([fdp, no]) => assert.deepEqual([fdp.used, no.used], [["RUH 0", "RUH 1"], ["RUH 0"]]),
        (lanes) => lanes.forEach((lane) => assert.ok(lane.validShare > 0.998 && lane.closed.holed === 0 && lane.closed.dead === 0, "all of it is valid")),
        ([fdp, no]) => {
            assert.ok(share(fdp.handle["RUH 0"]) < 0.01 && fdp.handle["RUH 0"].dead > 0, "whole or dead");
            assert.ok(share(fdp.handle["RUH 1"]) > 0.9, "the random stream's have holes");
            assert.ok(share(no.closed) > 0.95, "nearly all have holes");
        },
        ([fdp, no]) => {
            assert.ok(fdp.reallocated > 10, "the log that is shown has some");
            assert.equal(no.reallocated, no.collections, "each collection copies");
        },
        ([fdp, no]) => assert.ok(fdp.lately < 1.2 && no.lately > 1.7, "the curves part"),
        ([fdp, no]) => assert.ok(Math.abs(fdp.host / no.host - 1) < 1e-3 && no.media > 1.3 * fdp.media, "the same bytes, and not the same"),
    ],
    placement: [
        (lanes) => assert.ok(lanes.every((lane) => lane.units === lanes[0].units)),
        (lanes) => assert.deepEqual(lanes.map((lane) => lane.used), [["RUH 0", "RUH 1"], ["RUH 0", "RUH 1"], ["RUH 0"]]),
        (lanes, before) => lanes.forEach((lane, index) => assert.ok(lane.free < before[index].free / 2 && lane.marks.background_free_units > lane.marks.foreground_free_units, "free units run low")),
        (lanes) => assert.deepEqual(lanes.map((lane) => lane.used.length), [3, 2, 1]),
        (lanes) => {
            const [fdp, mixed, no] = lanes.map((lane) => lane.pool.units);
            assert.ok(0 < fdp && fdp < mixed && mixed < no, "more grey");
            const [a, b, c] = lanes.map((lane) => lane.copied);
            assert.ok(a < b && b < c, "more copied");
        },
        ([fdp, mixed, no]) => assert.ok(fdp.lately + 0.1 < mixed.lately && mixed.lately + 0.1 < no.lately, "Mixed lies between"),
        ([fdp, mixed, no]) => assert.ok(fdp.waf < mixed.waf && mixed.waf < no.waf),
    ],
    isolation: [
        (lanes) => assert.ok(lanes.every((lane) => lane.units === lanes[0].units)),
        (lanes) => lanes.forEach((lane) => {
            assert.deepEqual([lane.used, lane.copied], [["RUH 1", "RUH 2", "RUH 3"], 0]);
            assert.ok(lane.handle["RUH 1"].validPages / lane.handle["RUH 1"].units < 0.8 * (lane.handle["RUH 2"].validPages / lane.handle["RUH 2"].units), "small objects are overwritten at random, large ones in order");
        }),
        ([ii]) => assert.ok(ii.pool.units > 0 && ii.handle["RUH 1"].copied > 0 && ii.handle["RUH 3"].copied > 0, "both meet in the pool"),
        ([, pi]) => assert.ok(pi.pool === undefined || (pi.pool.units === 0 && pi.pool.received === 0), "no pool"),
        ([ii, pi]) => {
            for (const handle of ["RUH 1", "RUH 3"]) assert.ok(ii.handle[handle].ownWaf < pi.handle[handle].ownWaf - 0.03, `${handle} has less of a bill`);
            assert.ok(ii.pool.copied > 0, "the pool copies again");
        },
        ([ii, pi]) => assert.ok(Math.abs(ii.waf / pi.waf - 1) < 0.01, "in sum the same"),
        ([ii, pi]) => assert.ok(pi.open > ii.open, "more open units"),
    ],
    feedback: [
        (lanes) => assert.ok(lanes.every((lane) => lane.copied === 0)),
        (lanes) => lanes.forEach((lane) => {
            assert.deepEqual(lane.used, ["RUH 0", "RUH 1", "RUH 2"]);
            assert.ok(share(lane.handle["RUH 0"]) > 0.5, "units of RUH 0 are partly dead");
        }),
        ([nobody, listens]) => {
            assert.ok(nobody.reallocated > 10, "there are events");
            assert.equal(listens.media, nobody.media, "and nobody has read them");
        },
        ([nobody, listens]) => assert.ok(listens.handle["RUH 1"].hostBytes > nobody.handle["RUH 1"].hostBytes, "more goes through the warm handle"),
        ([nobody, listens]) => {
            assert.ok(listens.handle["RUH 1"].hostBytes > 1.03 * nobody.handle["RUH 1"].hostBytes, "and more still");
            assert.ok(listens.lately < nobody.lately - 0.02, "less is left to copy");
        },
        ([nobody, listens]) => assert.ok(listens.lately < 1.015 && nobody.lately > 1.05, "nearly nothing, and it goes on"),
    ],
};

let vite;
let server;
let page;

before(async () => {
    // The test compiles the page's own sources.
    vite = await createServer({ root: dirname(import.meta.dirname), configFile: false, server: { middlewareMode: true, ws: false, watch: null }, appType: "custom", logLevel: "error", optimizeDeps: { noDiscovery: true } });
    const [stories, lane, frame, series] = await Promise.all(["views/stories.ts", "state/lane.ts", "wire/frame.ts", "state/series.ts"].map((file) => vite.ssrLoadModule(`/src/${file}`)));
    page = { ...stories, ...lane, ...frame, ...series };
    server = await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0");
});

after(async () => {
    await vite?.close();
    await server?.stop();
});

/** Session whose frames are accumulated in the page's way. */
class Watched {
    lanes = [];

    static async of(order) {
        const watched = new Watched();
        watched.id = await server.begin(order);
        watched.socket = new WebSocket(`${server.address.replace("http", "ws")}api/sessions/${watched.id}/live`);
        watched.socket.on("message", (data, isBinary) => watched.hear(data, isBinary));
        await watched.until("lanes", () => watched.lanes.length > 0);
        return watched;
    }

    hear(data, isBinary) {
        if (isBinary) {
            const frame = new page.Frame(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
            const lane = this.lanes[frame.lane];
            lane.apply(frame);
            lane.taken();
            return;
        }
        const message = JSON.parse(data.toString());
        if (message.type === "session" && this.lanes.length === 0) this.lanes = message.lanes.map((lane) => new page.LaneState(lane));
        if (message.type === "error") this.problem = message.message;
    }

    async until(what, isSo) {
        const end = Date.now() + PATIENCE_MS;
        while (!isSo()) {
            assert.equal(this.problem, undefined);
            assert.ok(Date.now() < end, `${what} did not come in ${PATIENCE_MS} ms`);
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
    }

    /** Advances as "Next" of a caption does. */
    async goTo(capacities) {
        const target = Math.round(capacities * this.lanes[0].lane.capacity_bytes + 1);
        this.socket.send(JSON.stringify({ do: "seek", host_bytes: target }));
        await this.until(`${capacities} drive-writes`, () => this.lanes.every((lane) => lane.hostBytes >= target && lane.phase === "paused"));
    }

    async end() {
        this.socket.close();
        await server.json(`api/sessions/${this.id}`, { method: "DELETE" });
    }
}

test("the stories are those whose captions are asked here", () => {
    assert.deepEqual(page.STORIES.map((story) => [story.name, story.captions.length]), Object.entries(CLAIMS).map(([name, claims]) => [name, claims.length]));
    for (const story of page.STORIES) {
        const moments = story.captions.map((caption) => caption.from);
        assert.deepEqual(moments, [...moments].sort((a, b) => a - b));
        assert.ok(moments.at(-1) < story.order.drive_writes, "the last one comes before the end");
        assert.ok(Math.abs(story.order.drive_writes / story.speed - 60) < 3, "a minute");
    }
});

for (const name of Object.keys(CLAIMS)) {
    test(`captions of ${name}`, async () => {
        const story = page.STORIES.find((one) => one.name === name);
        const watched = await Watched.of(story.order);
        let earlier;
        for (const [index, caption] of story.captions.entries()) {
            await watched.goTo(caption.from);
            const lanes = watched.lanes.map((lane) => numbersOf(lane, page));
            if (process.env.TELL) console.log(caption.from, caption.text, JSON.stringify(lanes.map(({ handle, pool, ...rest }) => rest)));
            try {
                CLAIMS[name][index](lanes, earlier);
            } catch (error) {
                error.message = `at ${caption.from}, "${caption.text}": ${error.message}\n${JSON.stringify(lanes)}`;
                throw error;
            }
            earlier = lanes;
        }
        await watched.end();
    });
}
