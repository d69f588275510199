// Measures the drawing of the map, in pictures per second and milliseconds of script per picture.
// Chromium draws in software.
//
//   npm run build
//   node dev/speed.mjs [--units 65536] [--records 65536] [--lanes 1] [--seconds 10] [--cpu 0]
//                      [--renderer webgl2|canvas]
//
// The page receives 30 prepared frames per second, so the measurement excludes the engine. Each
// frame belongs to a drive of `--units` units. It updates `--records` of them, with changing valid
// counts, reclaimed units and their events. `--cpu` keeps Chromium on one core. The results are
// those of `warpMeter`, and the processor time of Chromium's processes. Other load of the machine
// does not count.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { WebSocketServer } from "ws";

const given = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const units = Number(given("units", "65536"));
const records = Math.min(units, Number(given("records", String(units))));
const lanes = Number(given("lanes", "1"));
const OWNERS = 5;
const RECLAIMS = 40;

/**
 * Frame of a drive that is rewritten. Units go through the states open, closed and being
 * reclaimed.
 */
function frame(number, lane) {
    const buffer = new ArrayBuffer(88 + OWNERS * 40 + records * 16 + RECLAIMS * 40);
    const view = new DataView(buffer);
    view.setUint8(0, 1);
    view.setUint8(1, lane);
    view.setUint8(2, 2);
    [OWNERS, records, RECLAIMS, 0, 2000].forEach((count, i) => view.setUint32(4 + 4 * i, count, true));
    [1e9 * (1 + number / 100), 1.3e9 * (1 + number / 100), 0, 0, number * RECLAIMS, number * 1000, 0, 2e7].forEach((value, i) => view.setFloat64(24 + 8 * i, value, true));
    for (let owner = 0; owner < OWNERS; owner += 1) {
        view.setFloat64(88 + owner * 40, 1e8, true);
        view.setFloat64(88 + owner * 40 + 24, units * 10, true);
        view.setUint32(88 + owner * 40 + 32, Math.floor(units / OWNERS), true);
    }
    for (let row = 0; row < records; row += 1) {
        const at = 88 + OWNERS * 40 + row * 16;
        const unit = Math.floor(((row + number * 7) * units) / records) % units;
        const age = (unit * 37 + number * 3) % 256;
        view.setUint32(at, unit, true);
        view.setUint8(at + 4, age < 4 ? 0 : age === 5 ? 1 : 3);
        view.setUint8(at + 5, unit % OWNERS);
        view.setUint32(at + 8, 1024 - age * 4, true);
        view.setUint32(at + 12, 1024, true);
    }
    for (let row = 0; row < RECLAIMS; row += 1) {
        const at = 88 + OWNERS * 40 + records * 16 + row * 40;
        view.setUint8(at, 3);
        view.setUint8(at + 1, row % OWNERS);
        view.setUint8(at + 3, 4);
        view.setUint32(at + 4, (row * 1301 + number * 17) % units, true);
        view.setUint32(at + 8, 1024, true);
        view.setUint32(at + 16, 200, true);
        view.setUint32(at + 20, (row * 733 + number * 29) % units, true);
    }
    return Buffer.from(buffer);
}

const session = {
    type: "session", id: "speed", title: "speed", speed: null, running: true,
    lanes: Array.from({ length: lanes }, (_, lane) => ({
        name: `lane ${lane}`, device: "none", workload: "", scale: "1/1", seed: 1, of: null, forked: null, page_bytes: 4096, capacity_bytes: units * 1000 * 4096, physical_bytes: units * 1024 * 4096, unit_pages: 1024, units, superblocks: units, groups: 1,
        owners: [...Array.from({ length: OWNERS - 1 }, (_, handle) => ({ name: `RUH ${handle}`, isolation: "II" })), { name: "shared pool", isolation: null }],
        placements: [], marks: { background_free_units: 100, foreground_free_units: 10 }, timed: false, write_bytes: null, settings: {},
    })),
};
const ROUND = 48;
const prepared = Array.from({ length: ROUND }, (_, number) => Array.from({ length: lanes }, (_, lane) => frame(number, lane)));

// The server provides the built page, the answer to its only request, and the frames.
const dist = join(import.meta.dirname, "../dist");
const kinds = { html: "text/html", js: "text/javascript", css: "text/css" };
const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    if (path.startsWith("/api/")) {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(path.endsWith("/order") ? { forks: [], lanes: [] } : { experiments: [], devices: [], jobs: [], workloads: [] }));
        return;
    }
    const file = path === "/" ? "/index.html" : path;
    response.setHeader("content-type", kinds[file.split(".").at(-1)] ?? "application/octet-stream");
    response.end(readFileSync(join(dist, file)));
});
let timer;
new WebSocketServer({ server }).on("connection", (socket) => {
    socket.send(JSON.stringify(session));
    let number = 0;
    timer = setInterval(() => {
        // A slow client skips frames, as with the real server. Nothing is queued.
        if (socket.bufferedAmount > 0) return;
        for (const one of prepared[number % ROUND]) socket.send(one);
        number += 1;
    }, 1000 / 30);
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${server.address().port}/`;

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
page.on("pageerror", (error) => console.log(error.message));
await page.goto(`${address}${given("renderer", "") === "" ? "" : `?renderer=${given("renderer", "")}`}#/session/speed`);
await page.waitForSelector(".transport .play");
const cpu = given("cpu", "");
/** Processes of Chromium, which are descendants of this process. */
function browserProcesses() {
    const all = spawnSync("ps", ["-eo", "pid,ppid"]).stdout.toString().trim().split("\n").slice(1).map((row) => row.trim().split(/\s+/).map(Number));
    const mine = new Set([process.pid]);
    for (let size = 0; size !== mine.size; ) {
        size = mine.size;
        for (const [pid, parent] of all) if (mine.has(parent)) mine.add(pid);
    }
    mine.delete(process.pid);
    return [...mine];
}
if (cpu !== "") for (const pid of browserProcesses()) spawnSync("taskset", ["-acp", cpu, String(pid)]);

/** Processor time of each kind of Chromium's processes, milliseconds. */
function processorMs() {
    const took = {};
    for (const pid of browserProcesses()) {
        try {
            const kind = /--type=([\w-]+)/.exec(readFileSync(`/proc/${pid}/cmdline`, "utf8"))?.[1] ?? "browser";
            const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
            took[kind] = (took[kind] ?? 0) + (Number(fields[11]) + Number(fields[12])) * 10;
        } catch {
            // The process ended between the two readings.
        }
    }
    return took;
}
if (given("order", "") !== "") await page.getByText(given("order", "")).click();
await page.waitForTimeout(3000);
const read = () => page.evaluate(() => ({ ...globalThis.warpMeter, at: performance.now() }));
const before = await read();
const tookBefore = processorMs();
await page.waitForTimeout(Number(given("seconds", "10")) * 1000);
const after = await read();
const took = processorMs();
const seconds = (after.at - before.at) / 1000;
const pictures = after.pictures - before.pictures;
const frames = after.frames - before.frames;
console.log(
    `${after.renderer}, ${units} units, ${records} records a frame, ${lanes} lanes${cpu === "" ? "" : ", one core"}: ${(frames / seconds / lanes).toFixed(1)} frames/s, ${(pictures / seconds / lanes).toFixed(1)} pictures/s; script ${((after.frameMs - before.frameMs) / frames).toFixed(2)} ms a frame + ${((after.pictureMs - before.pictureMs) / pictures).toFixed(2)} ms a picture; ${Math.round((after.tiles - before.tiles) / pictures)} tiles a picture`,
);
const parts = Object.keys(took).map((kind) => [kind, (took[kind] - (tookBefore[kind] ?? 0)) / pictures]).filter(([, ms]) => ms >= 0.05);
console.log(`  processor for a picture: ${parts.map(([kind, ms]) => `${kind} ${ms.toFixed(1)} ms`).join(", ")}; in all ${parts.reduce((sum, [, ms]) => sum + ms, 0).toFixed(1)} ms`);
clearInterval(timer);
if (given("picture", "") !== "") await page.screenshot({ path: given("picture", "") });
await browser.close();
server.close();
process.exit(0);
