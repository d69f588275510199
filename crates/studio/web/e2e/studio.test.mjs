// Tests of the studio with a real server and a real Chromium.
//
//   WARP_DEEP=1 node --test e2e/                  all tests
//   node --test e2e/                              without those that take long
//   node --test --test-name-pattern "fork" e2e/   one of them
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { commandCells, isOver, newPage, PATIENCE_MS, playToTheEnd, position, seek, standsAt, Server, startBrowser, threeStreams, until, wafs, warp, workFolder } from "./host.mjs";

const onlyDeep = (process.env.WARP_DEEP ?? "0") === "0" && "takes long; WARP_DEEP=1 runs it";
const AXE = createRequire(import.meta.url).resolve("axe-core");

let browser;
let server;

before(async () => {
    [browser, server] = await Promise.all([startBrowser(), Server.start("studio", "--no-open", "--listen", "127.0.0.1:0")]);
});

after(async () => {
    await browser?.close();
    const code = await server?.stop();
    // A failed test leaves its server running.
    await Promise.all([...Server.running].map((left) => left.kill()));
    assert.equal(code, 0, "Ctrl-C ends the server in order");
});

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
    await page.getByLabel("scale of the model").selectOption({ label: "1/2048" });
    await page.getByLabel("drive writes", { exact: true }).fill("2");
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
    await standsAt(page, 1.5);
    const there = await wafs(page);
    await seek(page, 0.25);
    await standsAt(page, 0.5);
    assert.notDeepEqual(await wafs(page), there);
    await seek(page, 0.75);
    await standsAt(page, 1.5);
    await until("the same numbers as before", async () => JSON.stringify(await wafs(page)) === JSON.stringify(there));

    await page.getByRole("button", { name: "step by a request" }).click();
    await playToTheEnd(page);
    const cells = await commandCells();
    const ended = cellsOf(await results(id));
    assert.deepEqual(ended.map(integers), ["FDP", "NoFDP"].map((name) => integers(cells[name])));
    await close(page);
});

test("the drives of an array stand side by side and end as in the command", async () => {
    const page = await newPage(browser);
    await page.goto(server.address);
    await page.getByPlaceholder(/Search/).fill("three_stream");
    await page.locator(".choices li").filter({ hasText: /three_stream$/ }).first().click();
    for (const variant of ["Mixed", "NoFDP"]) await page.getByText(variant, { exact: true }).click();
    await page.getByText("80/20", { exact: true }).click();
    await page.getByLabel("scale of the model").selectOption({ label: "1/2048" });
    await page.getByLabel("drive writes", { exact: true }).fill("2");
    await page.getByLabel("array of drives").fill("raid7,drives=4");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    assert.match(await page.locator(".begin [role=alert]").textContent(), /level "raid7" is unknown\. Use raid0/);
    await page.getByLabel("array of drives").fill("raid5,drives=4");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForSelector(".transport");
    await playToTheEnd(page);
    assert.deepEqual(await page.locator(".lane-name h2").allTextContents(), [0, 1, 2, 3].map((drive) => `FDP, drive ${drive}`));
    const { drives } = (await commandCells("--variant", "FDP", "--array", "raid5,drives=4")).FDP.array;
    const copied = (owners) => owners.map((owner) => owner.gc_pages_copied);
    const ended = cellsOf(await results(page.url().split("/").at(-1)));
    assert.deepEqual(ended.map((cell) => copied(cell.owners)), drives.map(({ stats }) => copied([...stats.handles, stats.shared])));
    await close(page);
});

test("a fork with another over-provisioning runs beside, and is what the command says", async () => {
    const { id, page } = await open(threeStreams(["NoFDP"]));
    await seek(page, 0.5);
    await standsAt(page, 1);
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

    // The link contains the fork too, and gives the same integers in another session.
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

test("sessions have names, and are ended where they are listed", async () => {
    const [id, other] = [await server.begin(threeStreams(["FDP"])), await server.begin(threeStreams(["FDP"], { name: "more room" }))];
    const page = await newPage(browser);
    await page.goto(server.address);
    const rows = page.locator(".running li");
    const row = (name) => rows.filter({ has: page.getByRole("link", { name, exact: true }) });
    await row("more room").waitFor();
    await page.goto(`${server.address}#/session/${id}`);
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("Name of the session").fill("as it is");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "as it is" }).waitFor();
    await until("the window's title", async () => (await page.title()) === "as it is · WARP Studio");
    await page.goto(`${server.address}#/`);
    await row("as it is").waitFor();
    await row("more room").getByRole("button", { name: /^End/ }).click();
    assert.ok((await server.json("api/sessions")).some((session) => session.id === other), "it asks once more");
    await row("more room").getByRole("button", { name: "Press again to end" }).click();
    await row("more room").waitFor({ state: "detached" });
    const left = (await server.json("api/sessions")).map((session) => session.id);
    assert.ok(left.includes(id) && !left.includes(other));
    // The start page also sets the name of a session.
    await page.waitForSelector(".choices li");
    await page.getByLabel("scale of the model").selectOption({ label: "1/2048" });
    await page.getByLabel("name of the session").fill("from the start page");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "from the start page" }).waitFor();
    for (const session of await server.json("api/sessions")) await server.json(`api/sessions/${session.id}`, { method: "DELETE" });
    await close(page);
});

test("the first collection is a press away, from the beginning and from the end", async () => {
    const { page } = await open(threeStreams(["FDP", "NoFDP"]));
    const find = async () => {
        await page.getByRole("button", { name: "First collection" }).click();
        await until("a collection that stands", async () => {
            const phases = await page.locator(".lane-phase").allTextContents();
            return phases.every((phase) => phase === "paused") && (await page.locator(".facts div:nth-child(3) dd").allTextContents()).some((count) => count !== "0");
        });
        return [await position(page), await page.locator(".facts dd").allTextContents()];
    };
    const first = await find();
    assert.ok(first[0] > 0.3 && first[0] < 1.5, `it is at ${first[0]}`);
    await page.locator(".events").getByLabel("Kind").selectOption("reclaim");
    await until("its event", async () => (await page.locator(".log li:not(.empty)").count()) > 0);
    await playToTheEnd(page);
    await page.getByRole("button", { name: "First collection" }).click();
    await until("the same place", async () => JSON.stringify([await position(page), (await page.locator(".facts dd").allTextContents()).filter((_, index) => index % 5 < 4)]) === JSON.stringify([first[0], first[1].filter((_, index) => index % 5 < 4)]));
    await close(page);
});

test("a lane's number and its curve say what they are the write amplification of", async () => {
    const { page } = await open(threeStreams(["FDP"]));
    assert.equal(await page.locator(".lane-waf span").textContent(), "WAF so far");
    const axis = () => page.locator(".curves .plot").first().evaluate((plot) => plot.getAttribute("data-y-label"));
    assert.equal(await axis(), "WAF of the last 0.1 drive writes");
    await page.locator(".curves select").first().selectOption("all");
    await until("the other axis", async () => (await axis()) === "WAF so far");
    await close(page);
});

// Two sizes of phones.
for (const [height, stories, skip] of [[844, ["reclaim-unit", "isolation"], onlyDeep], [667, ["reclaim-unit"], false]]) {
    test(`on a phone ${height} pixels high no caption of the tour is above what it is about`, { skip }, async () => {
        const page = await newPage(browser, { viewport: { width: 390, height }, isMobile: true, hasTouch: true });
        for (const story of stories) {
            await page.goto(`${server.address}#/tour/${story}`);
            const number = page.locator(".caption-title span");
            await number.waitFor();
            const count = Number((await number.textContent()).split(" of ")[1]);
            // Time stands still, so that no caption disappears before its check.
            await page.locator(".lane").first().waitFor();
            await until("the beginning", async () => (await position(page)) > 0);
            await page.getByRole("button", { name: "Pause", exact: true }).click();
            for (let caption = 1; caption <= count; caption += 1) {
                if (caption > 1) await page.getByRole("button", { name: "Next", exact: true }).click();
                await until(`caption ${caption} of ${story}`, async () => (await number.textContent()).startsWith(`${caption} of`));
                await until(`that all of what caption ${caption} of ${story} is about is seen`, () =>
                    page.evaluate(() => {
                        const top = document.querySelector("header.top").getBoundingClientRect().bottom;
                        const bottom = document.querySelector(".caption").getBoundingClientRect().top;
                        return [...document.querySelectorAll(".pointed-at")].some((part) => {
                            const box = part.getBoundingClientRect();
                            // A subject that is higher than the free space begins at its top.
                            const isHigh = box.height > bottom - top - 20;
                            return box.top >= top && (isHigh ? box.top < top + 40 : box.bottom <= bottom);
                        });
                    }),
                );
            }
        }
        await close(page);
    });
}

test("two kept experiments are compared cell by cell, with what the lab says of them", async () => {
    const study = async (name, variants) => {
        const { mkdir } = await import("node:fs/promises");
        await mkdir(join(workFolder, name), { recursive: true });
        await writeFile(join(workFolder, name, "random.fio"), "[random]\nrw=randwrite\nbs=16k\nsize=90%\nnorandommap\ntime_based\nruntime=24h\n");
        const rows = Object.entries(variants).map(([variant, spare]) => `[[variants]]\nname = "${variant}"\ndevice = { "geometry.over_provisioning" = ${spare} }\n`);
        await writeFile(join(workFolder, name, "experiment.toml"), `title = "${name}"\nsource = "a test"\ndevices = ["ssd_a"]\nworkload = "random.fio"\n[run]\ndrive_writes = 3.0\nscale = "1/4096"\nseeds = [1, 2]\n${rows.join("")}`);
        await warp("run", join(workFolder, name));
        return (await server.json("api/runs"))[0].id;
    };
    const first = await study("one", { small: 0.1, middle: 0.2, large: 0.4 });
    const second = await study("other", { small: 0.2, middle: 0.2, huge: 0.8 });
    const third = await study("third", { nothing: 0.3, alike: 0.4 });
    const page = await newPage(browser, { bypassCSP: true });
    await page.goto(`${server.address}#/compare`);
    const pick = (id) => page.getByLabel(`Compare ${id}`).click();
    await pick(first);
    await pick(second);
    const beside = page.getByRole("region", { name: "Comparison of two runs" });
    await beside.getByText("2 cells of the same name in both are compared").waitFor();
    await beside.getByText("1 cell only in A (not compared), large").waitFor();
    await beside.getByText("1 cell only in B (not compared), huge").waitFor();
    const said = JSON.parse(await warp("results", "compare", first, second, "--json")).rows.filter((row) => row.metric === "WAF");
    const shown = await beside.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((one) => one.textContent)));
    const words = { same: "the same", less: "less" };
    assert.deepEqual(
        shown.map((cells) => [cells[0], cells[2], cells[3], cells.at(-1)]),
        said.map((row) => [row.cell, row.a.toFixed(3), row.b.toFixed(3), words[row.verdict]]),
    );
    assert.deepEqual(shown.map((cells) => cells.at(-1)), ["less", "the same"], "room helps, and the same is the same");
    await beside.getByLabel(/all \d+ metrics/).check();
    await until("handles too", async () => (await beside.locator("tbody tr").count()) > 4);
    assert.deepEqual(await violations(page), []);
    await pick(third);
    await page.getByText(/These two runs cannot be compared\..*nothing to compare/).waitFor();
    await close(page);
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
    // The export is an experiment. The command runs it with the same result.
    const folder = join(workFolder, "exported");
    await (await import("node:fs/promises")).mkdir(folder, { recursive: true });
    await writeFile(join(folder, "experiment.toml"), files["experiment.toml"]);
    const again = JSON.parse(await warp("run", folder, "--no-keep", "--json"));
    const here = cellsOf(JSON.parse(files["result.json"]));
    assert.deepEqual(again.cells.map(integers), here.map(integers));
    await server.json(`api/sessions/${id}`, { method: "DELETE" });
    await close(page);
});

test("ten pages watch at once", { skip: onlyDeep }, async () => {
    const id = await server.begin(threeStreams(["FDP"], { seed: 2 }));
    const pages = await Promise.all(Array.from({ length: 10 }, () => newPage(browser)));
    await Promise.all(pages.map((page) => page.goto(`${server.address}#/session/${id}`)));
    await Promise.all(pages.map((page) => page.waitForSelector(".transport")));
    await playToTheEnd(pages[0]);
    await Promise.all(pages.map((page) => isOver(page)));
    const shown = await Promise.all(pages.map((page) => wafs(page)));
    for (const one of shown) assert.deepEqual(one, shown[0], "all of them show the same drive");
    await Promise.all(pages.map((page) => close(page)));
});

test("latencies of a lane in virtual time are drawn while it is on its way", async () => {
    const { page } = await open(threeStreams(["FDP"], { timed: true, drive_writes: 3 }));
    await page.locator(".curves").getByText("latency").click();
    await seek(page, 0.4);
    const rows = page.locator(".curves tbody tr");
    await until("latencies, long before the end", async () => (await rows.count()) >= 3 && (await position(page)) < 3);
    const drawn = page.locator(".curves .uplot canvas");
    await until("curves of percentiles and of bandwidth", async () => (await drawn.count()) >= 2);
    assert.match(await page.locator(".curves .u-legend").first().textContent(), /write p99.9.*µs/s);
    const pixels = await drawn.first().evaluate((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return data.filter((value, index) => index % 4 === 3 && value > 0).length;
    });
    assert.ok(pixels > 2000, `something is drawn: ${pixels} pixels`);
    // At an early position all blocks may have equal erases, and there is no plot.
    await playToTheEnd(page);
    await isOver(page);
    await page.locator(".curves").getByText("wear", { exact: true }).click();
    await page.getByLabel(/^Blocks by number of erases, from \d+ to \d+$/).waitFor();
    await close(page);
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
    await page.getByText("the page restarted this run").waitFor();
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

test("a page of a served drive that comes late says so, and shows what was written before", async () => {
    const served = await Server.start("serve", "--device", "warp_default", "--capacity", "128M", "--data", "null", "--tcp", "127.0.0.1:0", "--vfio-user", join(workFolder, "guest.sock"), "--studio", "127.0.0.1:0", "--quiet");
    const port = /-s (\d+)/.exec(served.introduction)[1];
    await writeFile(join(workFolder, "late.fio"), "[cold]\nrw=write\nbs=64k\nsize=70%\n[hot]\nstonewall\nrw=randwrite\nbs=4k\noffset=70%\nsize=10%\nio_size=80m\nnorandommap\nfdp=1\nfdp_pli=1\n");
    const run = () => warp("run", "late.fio", "--target", `tcp:127.0.0.1:${port}`, "--overwrite", "--json");
    await run();
    const page = await newPage(browser);
    await page.goto(`${served.address}#/drive`);
    await page.locator("figcaption").filter({ hasText: /The drive was not monitored before [\d:]+, so the curves begin there\. Earlier, hosts wrote 1\.\d\d drive writes, with a WAF of 1\.\d+ and \d+\s+collections\./ }).waitFor();
    // The server waits on the guest's socket without a guest.
    await page.getByText("No host is connected").waitFor();
    assert.equal(await page.getByText("events are missing here").count(), 0);
    const ink = await page.locator(".curves .uplot canvas").first().evaluate((canvas) => {
        const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const dark = (at) => data[at + 3] > 200 && data[at] < 60 && data[at + 1] < 60 && data[at + 2] < 60;
        return new Set(Array.from({ length: data.length / 4 }, (_, pixel) => pixel).filter((pixel) => dark(pixel * 4)).map((pixel) => pixel % width)).size;
    });
    assert.ok(ink > 100, `what was before is drawn: ${ink} columns`);
    await page.goto("about:blank");
    await run();
    await page.goto(`${served.address}#/drive`);
    await page.locator("figcaption").filter({ hasText: /The drive was not monitored (until|before) / }).waitFor();
    await close(page);
    assert.equal(await served.stop(), 0);
});

test("a served drive is seen while a host writes to it", async () => {
    const served = await Server.start("serve", "--device", "warp_default", "--capacity", "128M", "--data", "null", "--tcp", "127.0.0.1:0", "--studio", "127.0.0.1:0", "--quiet");
    const port = /-s (\d+)/.exec(served.introduction)[1];
    const page = await newPage(browser);
    await page.goto(`${served.address}#/drive`);
    await page.getByText("No host is connected").waitFor();
    await writeFile(join(workFolder, "host.fio"), "[cold]\nrw=write\nbs=64k\nsize=70%\n[hot]\nstonewall\nrw=randwrite\nbs=4k\noffset=70%\nsize=10%\nio_size=80m\nnorandommap\nfdp=1\nfdp_pli=1\n");
    // The page polls hosts once a second, so this host stays until the page has shown it.
    let isSeen = false;
    const writing = (async () => {
        do await warp("run", "host.fio", "--target", `tcp:127.0.0.1:${port}`, "--json");
        while (!isSeen);
    })();
    await page.locator(".hosts tbody tr").filter({ hasText: "NVMe/TCP" }).first().waitFor();
    isSeen = true;
    await writing;
    const drive = await served.json("api/drive");
    assert.equal(drive.lanes[0].device, "warp_default");
    // Numbers above a thousand have a space or a suffix, such as "1 013" or "25.6 k".
    await until("collections", async () => /^[1-9]/.test((await page.locator(".facts dd").allTextContents())[2]));
    await until("that nobody is connected again", async () => page.getByText("No host is connected").isVisible());
    const [waf] = await wafs(page);
    assert.ok(Number(waf) >= 1, `${waf} is a write amplification`);
    await close(page);
    assert.equal(await served.stop(), 0);
});

/** Returns axe's findings about the current page. */
async function violations(page) {
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    return violations.map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}

/** Presses a button that asks for confirmation. */
async function pressTwice(within, name, again) {
    await within.getByRole("button", { name, exact: true }).click();
    await within.getByRole("button", { name: again, exact: true }).click();
}

/** Reads the host and media bytes from the drive itself. */
async function statistics(port) {
    const { statistics } = JSON.parse(await warp("drive", "inspect", `tcp:127.0.0.1:${port}`, "--json")).enabled;
    return [statistics.host_bytes_written, statistics.media_bytes_written];
}

test("whoever has the token stores a served drive, counts it anew and has it fail", async () => {
    const [token, data] = [join(workFolder, "token"), join(workFolder, "acted.img")];
    await writeFile(token, "0123456789abcdef\n", { mode: 0o600 });
    const parameters = ["serve", "--device", "warp_default", "--capacity", "128M", "--data", data, "--checkpoint", "0", "--tcp", "127.0.0.1:0", "--studio", "127.0.0.1:0", "--quiet"];
    const served = await Server.start(...parameters, "--studio-token", token);
    const port = /-s (\d+)/.exec(served.introduction)[1];
    const run = () => warp("run", "acted.fio", "--target", `tcp:127.0.0.1:${port}`, "--overwrite", "--json");
    await writeFile(join(workFolder, "acted.fio"), "[cold]\nrw=write\nbs=64k\nsize=70%\n[hot]\nstonewall\nrw=randwrite\nbs=4k\noffset=70%\nsize=10%\nio_size=80m\nnorandommap\nfdp=1\nfdp_pli=1\n");
    await run();
    const pages = await Promise.all([newPage(browser, { bypassCSP: true }), newPage(browser, { bypassCSP: true, colorScheme: "dark", viewport: { width: 390, height: 844 } })]);
    const [page, phone] = pages;
    for (const one of pages) {
        await one.goto(`${served.address}?token=0123456789abcdef#/drive`);
        await one.getByText("The numbers start with the creation of the drive").waitFor();
    }

    // Snapshot
    await assert.rejects(readFile(`${data}.ftl`), "no checkpoint was made");
    await pressTwice(page, "Save a snapshot", "Press again to save");
    await page.getByText(/^The drive was stored at .*acted\.img\.ftl \(/).waitFor();
    assert.ok((await readFile(`${data}.ftl`)).length > 10_000);
    await warp("drive", "inspect", data);
    await pressTwice(page, "Save a snapshot", "Press again to save");
    await page.getByText(/^The drive has not changed since it was stored at /).waitFor();

    // Statistics restart on all pages, but not in the drive's log pages. The phone uses the
    // keyboard.
    const before = await statistics(port);
    await until("the drive's own write amplification", async () => (await wafs(page))[0] === (before[1] / before[0]).toFixed(3));
    await phone.getByRole("button", { name: "Reset statistics", exact: true }).focus();
    await phone.keyboard.press("Enter");
    await phone.keyboard.press("Enter");
    await phone.getByText(/^The statistics on all pages of this drive start at /).waitFor();
    for (const one of pages) {
        await one.getByText("The numbers start with the creation of the drive").waitFor({ state: "detached" });
        await until("no write amplification", async () => (await wafs(one))[0] === "–");
    }
    assert.deepEqual(await statistics(port), before, "log pages know nothing of it");
    await run();
    const after = await statistics(port);
    const waf = ((after[1] - before[1]) / (after[0] - before[0])).toFixed(3);
    assert.notEqual(waf, (after[1] / after[0]).toFixed(3), "it differs from that since the beginning");
    for (const one of pages) await until(`a write amplification of ${waf}`, async () => (await wafs(one))[0] === waf);

    // Faults
    await page.getByRole("button", { name: "Faults …" }).click();
    const dialog = page.getByRole("dialog");
    const write = async (text) => {
        await dialog.locator(".cm-content").click();
        await page.keyboard.press("Control+A");
        await page.keyboard.insertText(text);
    };
    await write('[[fault]]\nname = "no writes"\nkind = "eror"\n');
    await dialog.locator(".problems b").getByText("line 1").waitFor();
    await pressTwice(dialog, "Inject this plan", "Press again to inject");
    await dialog.getByText("the kind is unknown").waitFor();
    assert.equal((await served.json("api/drive/faults", { headers: { authorization: "Bearer 0123456789abcdef" } })).faults, null);
    await write('[[fault]]\nname = "no writes"\nkind = "error"\ncommands = ["write"]\nstatus = "internal_error"\n');
    await until("that nothing is wrong", async () => (await dialog.locator(".problems li").count()) === 0);
    await pressTwice(dialog, "Inject this plan", "Press again to inject");
    await dialog.getByText("One fault is planned").waitFor();
    await assert.rejects(run(), /rejected command 0x[0-9a-f]+ with "Internal Error \(SCT 0h, SC 06h\)"/, "its status reaches the host");
    for (const one of pages) await one.locator('section[aria-label="Faults"] tr').filter({ hasText: /no writes.*error.*active[1-9]/ }).waitFor();
    // The pages have no accessibility violations with and without the dialog, and with and without
    // a question.
    await phone.getByRole("button", { name: "Save a snapshot", exact: true }).click();
    for (const one of pages) assert.deepEqual(await violations(one), []);
    await pressTwice(dialog, "Clear all", "Press again to clear");
    await dialog.getByText("All faults are cleared").waitFor();
    await run();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await Promise.all(pages.map((one) => close(one)));

    // A killed drive continues from the snapshot. Actions need a token.
    await served.kill();
    const again = await Server.start(...parameters);
    assert.match(again.introduction, /mapping and counters come from a checkpoint/);
    const watcher = await newPage(browser);
    await watcher.goto(`${again.address}#/drive`);
    await watcher.getByText("This page only monitors the drive").waitFor();
    assert.equal(await watcher.getByRole("button", { name: "Reset statistics" }).count(), 0);
    await close(watcher);
    assert.equal(await again.stop(), 0);
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
            assert.deepEqual(await violations(page), [], view);
        }
        await close(page);
    });
}
