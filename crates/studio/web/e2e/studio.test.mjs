// The studio as a person uses it: a real server, a real Chromium.
//
//   node --test e2e/          one of them: node --test --test-name-pattern "fork" e2e/
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { commandCells, newPage, PATIENCE_MS, Server, startBrowser, threeStreams, warp, workFolder } from "./host.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core");

let browser;
let server;

before(async () => {
    [browser, server] = await Promise.all([startBrowser(), Server.start("studio", "--no-open", "--listen", "127.0.0.1:0")]);
});

after(async () => {
    await browser?.close();
    const code = await server?.stop();
    // A test that failed has left its own.
    await Promise.all([...Server.running].map((left) => left.kill()));
    assert.equal(code, 0, "Ctrl-C ends the server in order");
});

/** The write amplification of each lane as the page shows it. */
const wafs = (page) => page.locator(".lane-waf b").allTextContents();

/** Drive-writes that the page says the run is at. */
const position = async (page) => Number(await page.locator(".position b").textContent());

/** As `page.waitForFunction`, but of a question to be asked from here. */
async function until(what, question) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await question())) {
        assert.ok(Date.now() < end, `${what} did not come in ${PATIENCE_MS} ms`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/** Drive-writes of the host in each lane. */
const hosts = async (page) => (await page.locator(".lane .facts div:first-child dd").allTextContents()).map((text) => Number.parseFloat(text));

/** Every lane is there, and the whole page says so. */
const isAt = (page, place) => until(`${place} drive-writes`, async () => {
    const lanes = await hosts(page);
    return lanes.length > 0 && lanes.every((one) => Math.abs(one - place) < 0.015) && Math.abs((await position(page)) - place) < 0.015;
});

const isOver = (page) => until("the end of the run", async () => {
    const phases = await page.locator(".lane-phase").allTextContents();
    return phases.length > 0 && phases.every((phase) => phase === "ended");
});

/** Moves the slider to a share of the run, as dragging it and letting go does. */
async function seek(page, share) {
    await page.locator(".slider input").evaluate((slider, to) => {
        slider.value = String(Math.round(to * Number(slider.max)));
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        slider.dispatchEvent(new Event("change", { bubbles: true }));
    }, share);
}

async function playToTheEnd(page) {
    await page.getByLabel("Speed").selectOption({ label: "full speed" });
    await page.locator("button.play").click();
    await isOver(page);
}

async function open(order, options) {
    const id = await server.begin(order);
    const page = await newPage(browser, options);
    await page.goto(`${server.address}#/session/${id}`);
    await page.waitForSelector(".transport");
    return { id, page };
}

async function close(page) {
    assert.deepEqual(page.mistakes, [], "nothing goes wrong in the page unseen");
    await page.close();
}

const results = async (id) => JSON.parse(await (await fetch(new URL(`api/sessions/${id}/export/result.json`, server.address))).text());
const cellsOf = (result) => (Array.isArray(result) ? result : result.cells);
const integers = (cell) => [cell.host_bytes_written, cell.media_bytes_written, cell.media_bytes_erased, cell.owners.map((owner) => [owner.gc_pages_copied, owner.units_reclaimed])];

test("an experiment is started by hand and ends with the command's write amplification", async () => {
    const page = await newPage(browser);
    const begun = Date.now();
    await page.goto(server.address);
    await page.waitForSelector(".choices li");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    console.log(`first paint after ${Math.round(paint)} ms, the catalogue after ${Date.now() - begun} ms`);
    assert.ok(paint < 5000, "the page is there at once, on a busy machine too");
    await page.getByPlaceholder(/Search/).fill("three_stream");
    await page.locator(".choices li").filter({ hasText: /three_stream$/ }).first().click();
    await page.getByText("80/20", { exact: true }).click();
    await page.getByLabel("scale of the twin").selectOption({ label: "1/2048" });
    await page.getByLabel("drive-writes").fill("2");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".transport");
    await playToTheEnd(page);
    const cells = await commandCells();
    const names = await page.locator(".lane-name h2").allTextContents();
    assert.deepEqual(names.map((name) => name.split(",")[0]), ["FDP", "Mixed", "NoFDP"]);
    assert.deepEqual(await wafs(page), names.map((name) => cells[name.split(",")[0]].waf.toFixed(3)), "to the last digit shown");
    assert.match(await page.locator(".headline .sentence").textContent(), /FDP writes .* less to the flash than NoFDP/);
    await close(page);
});

test("paused, set back and gone on, a run ends with the same integers", async () => {
    const { id, page } = await open(threeStreams(["FDP", "NoFDP"]));
    await page.getByLabel("Speed").selectOption({ label: "0.2 ×/s" });
    await page.locator("button.play").click();
    await until("a tenth of a drive-write", async () => (await position(page)) > 0.1);
    await page.locator("button.play").click();
    const paused = await position(page);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.ok((await position(page)) - paused < 0.1, "what is paused stands still");

    await seek(page, 0.75);
    await isAt(page, 1.5);
    const there = await wafs(page);
    await seek(page, 0.25);
    await isAt(page, 0.5);
    assert.notDeepEqual(await wafs(page), there);
    await seek(page, 0.75);
    await isAt(page, 1.5);
    await until("the same numbers as before", async () => JSON.stringify(await wafs(page)) === JSON.stringify(there));

    await page.getByRole("button", { name: "step by a request" }).click();
    await playToTheEnd(page);
    const cells = await commandCells();
    const ended = cellsOf(await results(id));
    assert.deepEqual(ended.map(integers), ["FDP", "NoFDP"].map((name) => integers(cells[name])));
    await close(page);
});

test("a fork with another over-provisioning runs beside, and is what the command says", async () => {
    const { id, page } = await open(threeStreams(["NoFDP"]));
    await seek(page, 0.5);
    await isAt(page, 1);
    await page.getByRole("button", { name: "Fork from here" }).click();
    await page.getByRole("dialog").getByLabel("setting").selectOption({ label: "over-provisioning" });
    await page.getByRole("dialog").getByLabel("value").selectOption('0.28');
    await page.getByRole("dialog").getByRole("button", { name: "Fork", exact: true }).click();
    await until("the second lane", async () => (await page.locator(".lane").count()) === 2);
    await playToTheEnd(page);
    const sentence = await page.locator(".headline .sentence").textContent();
    assert.match(sentence, /writes .* less to the flash than NoFDP since the fork/);
    const [plain, roomy] = [await commandCells(), await commandCells("--set", "geometry.over_provisioning=0.28")];
    assert.deepEqual(cellsOf(await results(id)).map(integers), [integers(plain.NoFDP), integers(roomy.NoFDP)]);

    // The link holds the fork too, and gives the same integers in another session.
    const order = await server.json(`api/sessions/${id}/order`);
    assert.equal(order.forks.length, 1);
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.startsWith("#/run/"));
    const link = page.url();
    await close(page);
    const again = await newPage(browser);
    await again.goto(link);
    await again.waitForSelector(".transport");
    await playToTheEnd(again);
    await until("both lanes", async () => (await again.locator(".lane").count()) === 2);
    await isOver(again);
    const sessions = await server.json("api/sessions");
    const newest = sessions.map((session) => session.id).at(-1);
    assert.notEqual(newest, id, "the link is a session of its own");
    assert.deepEqual(cellsOf(await results(newest)).map(integers), cellsOf(await results(id)).map(integers));
    await close(again);
});

test("what is exported can be used outside", async () => {
    const { id, page } = await open(threeStreams(["FDP", "NoFDP"]));
    await playToTheEnd(page);
    const files = {};
    for (const form of ["report.html", "experiment.toml", "run.py", "trace.json", "result.json"]) {
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByLabel("Export").selectOption(form)]);
        files[form] = await readFile(await download.path(), "utf8");
        assert.ok(files[form].length > 100, `${form} has something in it`);
    }
    assert.match(files["report.html"], /^<!doctype html>/i);
    const trace = JSON.parse(files["trace.json"]);
    assert.ok(trace.traceEvents.some((event) => event.ph === "X"), "collections are slices");
    // The experiment is one: the command runs it, and comes to the same.
    const folder = join(workFolder, "exported");
    await (await import("node:fs/promises")).mkdir(folder, { recursive: true });
    await writeFile(join(folder, "experiment.toml"), files["experiment.toml"]);
    const again = JSON.parse(await warp("run", folder, "--no-keep", "--json"));
    const here = cellsOf(JSON.parse(files["result.json"]));
    assert.deepEqual(again.cells.map(integers), here.map(integers));
    await server.json(`api/sessions/${id}`, { method: "DELETE" });
    await close(page);
});

test("ten pages watch at once", async () => {
    const id = await server.begin(threeStreams(["FDP", "NoFDP"], { seed: 2 }));
    const pages = await Promise.all(Array.from({ length: 10 }, () => newPage(browser)));
    await Promise.all(pages.map((page) => page.goto(`${server.address}#/session/${id}`)));
    await Promise.all(pages.map((page) => page.waitForSelector(".transport")));
    await playToTheEnd(pages[0]);
    await Promise.all(pages.map((page) => isOver(page)));
    const shown = await Promise.all(pages.map((page) => wafs(page)));
    for (const one of shown) assert.deepEqual(one, shown[0], "all of them show the same drive");
    await Promise.all(pages.map((page) => close(page)));
});

test("a server that is killed and comes back is noticed, and the run begins again", async () => {
    const first = await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0");
    const port = new URL(first.address).port;
    const id = await first.begin(threeStreams(["FDP"]));
    const page = await newPage(browser);
    await page.goto(`${first.address}#/session/${id}`);
    await page.waitForSelector(".transport");
    await playToTheEnd(page);
    const before = await wafs(page);
    await first.kill();
    await page.getByText("The server does not answer").waitFor();
    assert.deepEqual(await wafs(page), before, "the last picture stays");
    const second = await Server.start("studio", "--no-open", "--listen", `127.0.0.1:${port}`);
    await page.getByText("began again from its order").waitFor();
    await playToTheEnd(page);
    assert.deepEqual(await wafs(page), before);
    await close(page);
    assert.equal(await second.stop(), 0);
});

test("a job file is written in the page, and what is wrong with it stands at its line", async () => {
    const page = await newPage(browser);
    await page.goto(server.address);
    await page.getByText("A device and a workload").click();
    await page.waitForSelector(".cm-content");
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText("[job]\nrw=randwrite\nbs=4k\nsize=50%\nrw_no_such=1\n");
    await page.locator(".cm-lintRange-error, .cm-lint-marker-error").first().waitFor();
    await close(page);
});

test("a served drive is seen while a host writes to it", async () => {
    const served = await Server.start("serve", "--device", "warp_default", "--capacity", "128M", "--data", "null", "--tcp", "127.0.0.1:0", "--studio", "127.0.0.1:0", "--quiet");
    const port = /-s (\d+)/.exec(served.introduction)[1];
    const page = await newPage(browser);
    await page.goto(`${served.address}#/drive`);
    await page.getByText("Nobody is connected").waitFor();
    await writeFile(join(workFolder, "host.fio"), "[cold]\nrw=write\nbs=64k\nsize=70%\n[hot]\nstonewall\nrw=randwrite\nbs=4k\noffset=70%\nsize=10%\nio_size=80m\nnorandommap\nfdp=1\nfdp_pli=1\n");
    // Hosts are looked at once a second; this one comes until it was seen.
    let isSeen = false;
    const writing = (async () => {
        do await warp("run", "host.fio", "--on", `tcp:127.0.0.1:${port}`, "--json");
        while (!isSeen);
    })();
    await page.locator(".hosts tbody tr").filter({ hasText: "NVMe/TCP" }).first().waitFor();
    isSeen = true;
    await writing;
    const drive = await served.json("api/drive");
    assert.equal(drive.lanes[0].device, "warp_default");
    // A thousand and more are written with a space, or short: "1 013", "25.6 k".
    await until("collections", async () => /^[1-9]/.test((await page.locator(".facts dd").allTextContents())[2]));
    await until("that nobody is connected again", async () => page.getByText("Nobody is connected").isVisible());
    const [waf] = await wafs(page);
    assert.ok(Number(waf) >= 1, `${waf} is a write amplification`);
    await close(page);
    assert.equal(await served.stop(), 0);
});

test("keys play, step and pause", async () => {
    const { page } = await open(threeStreams(["FDP"]));
    await page.locator("h1").click();
    await page.keyboard.press(".");
    await until("a request", async () => (await page.locator(".facts dd").allTextContents())[3] !== "0");
    await page.keyboard.press(" ");
    await until("that it runs", async () => (await position(page)) > 0.01);
    await close(page);
});

for (const colorScheme of ["light", "dark"]) {
    test(`axe finds nothing in the ${colorScheme} views`, async () => {
        const { page } = await open(threeStreams(["FDP", "NoFDP"]), { colorScheme, bypassCSP: true });
        await seek(page, 0.6);
        await until("something to look at", async () => (await position(page)) > 1);
        const session = page.url();
        for (const view of [session, `${server.address}#/`, `${server.address}#/compare`, `${server.address}#/tour`, `${server.address}#/session/none`]) {
            await page.goto(view);
            await page.waitForTimeout(700);
            await page.addScriptTag({ path: AXE });
            const { violations } = await page.evaluate(() => globalThis.axe.run());
            const told = violations.map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
            assert.deepEqual(told, [], view);
        }
        await close(page);
    });
}
