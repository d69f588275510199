// Tests of the widget in a notebook. The module of anywidget runs on a page of another origin than
// the studio's.
//
//   warp studio --token -> dist/widget.js, as text -> a page of another server
//     -> render({ model, el }), called as by anywidget
//
// The notebook is minimal, a page with a cell to edit, a model with `get`, and an element for the
// output.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { commandCells, newPage, playToTheEnd, position, seek, standsAt, Server, startBrowser, threeStreams, until, wafs, workFolder } from "./host.mjs";

const TOKEN = "of the notebook's tests/+";
const headers = { authorization: `Bearer ${TOKEN}` };
const PAGE = `<!doctype html><meta charset="utf-8"><title>notebook</title><body data-jp-theme-light="true">
<textarea id="cell"></textarea><p id="text" tabindex="0">Text between cells.</p><div id="output" style="width: 900px"></div>`;

let browser;
let server;
let notebook;

before(async () => {
    const file = join(workFolder, "token");
    await writeFile(file, `${TOKEN}\n`, { mode: 0o600 });
    [browser, server] = await Promise.all([startBrowser(), Server.start("studio", "--no-open", "--listen", "127.0.0.1:0", "--token", file)]);
    const module = await (await fetch(new URL("widget.js", server.address))).text();
    notebook = createServer((request, response) => {
        const isModule = request.url === "/module.js";
        response.setHeader("content-type", isModule ? "text/javascript" : "text/html").end(isModule ? module : PAGE);
    });
    await new Promise((listening) => notebook.listen(0, "localhost", listening));
});

after(async () => {
    await browser?.close();
    notebook?.close();
    const code = await server?.stop();
    await Promise.all([...Server.running].map((left) => left.kill()));
    assert.equal(code, 0, "Ctrl-C ends the server in order");
});

/** Runs the cell. `traits` are the traits of Python's widget. */
async function show(traits) {
    const page = await newPage(browser);
    await page.goto(`http://localhost:${notebook.address().port}/`);
    const model = { url: server.address.replace(/\/$/, ""), token: TOKEN, order: null, session: null, ...traits };
    await page.evaluate(async (given) => {
        const widget = (await import("/module.js")).default;
        globalThis.removeOutput = await widget.render({ model: { get: (name) => given[name] }, el: document.getElementById("output") });
    }, model);
    return page;
}

async function close(page) {
    assert.deepEqual(page.mistakes, [], "nothing goes wrong in the page unseen");
    await page.close();
}

const sessions = async () => (await server.json("api/sessions", { headers })).map((session) => session.id);

test("an order runs in a notebook and ends with the command's write amplification; its session goes with the output", async () => {
    const page = await show({ order: threeStreams(["FDP", "NoFDP"]) });
    assert.notEqual(new URL(page.url()).origin, new URL(server.address).origin);
    await page.waitForSelector(".transport");
    await playToTheEnd(page);
    const cells = await commandCells();
    assert.deepEqual(await wafs(page), ["FDP", "NoFDP"].map((name) => cells[name].waf.toFixed(3)), "to the last digit shown");
    const [id] = await sessions();
    assert.ok(id);
    await page.evaluate(() => globalThis.removeOutput());
    await until("the session's end", async () => !(await sessions()).includes(id));
    await close(page);
});

test("it is paused, set back and forked as in the studio's own page", async () => {
    const page = await show({ order: threeStreams(["NoFDP"]) });
    await page.waitForSelector(".transport");
    await page.getByLabel("Speed").selectOption({ label: "0.2 ×/s" });
    await page.locator("button.play").click();
    await until("a tenth of a drive-write", async () => (await position(page)) > 0.1);
    await page.locator("button.play").click();
    const paused = await position(page);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.ok((await position(page)) - paused < 0.1, "what is paused stands still");
    await seek(page, 0.5);
    await standsAt(page, 1);
    await page.getByRole("button", { name: "Fork from here" }).click();
    await page.getByRole("dialog").getByLabel("setting").selectOption({ label: "over-provisioning" });
    await page.getByRole("dialog").getByLabel("value").selectOption("0.28");
    await page.getByRole("dialog").getByRole("button", { name: "Fork", exact: true }).click();
    await until("the second lane", async () => (await page.locator(".lane").count()) === 2);
    await playToTheEnd(page);
    const [plain, roomy] = [await commandCells(), await commandCells("--set", "geometry.over_provisioning=0.28")];
    assert.deepEqual(await wafs(page), [plain, roomy].map((cells) => cells.NoFDP.waf.toFixed(3)));
    await close(page);
});

test("a session that was given is shown by two widgets, and is not theirs to end", async () => {
    const { id } = await server.json("api/sessions", { method: "POST", headers, body: JSON.stringify(threeStreams(["FDP"])) });
    const pages = [await show({ session: id }), await show({ session: id })];
    await pages[0].waitForSelector(".transport");
    await playToTheEnd(pages[0]);
    await until("the same in the other", async () => JSON.stringify(await wafs(pages[1])) === JSON.stringify(await wafs(pages[0])));
    for (const page of pages) {
        await page.evaluate(() => globalThis.removeOutput());
        await close(page);
    }
    assert.ok((await sessions()).includes(id));
    await server.json(`api/sessions/${id}`, { method: "DELETE", headers });
});

test("keys are the notebook's, but for those that are pressed in the widget", async () => {
    const page = await show({ order: threeStreams(["FDP"]) });
    await page.waitForSelector(".transport");
    await page.locator("#text").click();
    for (const key of [" ", ".", " "]) await page.keyboard.press(key);
    await page.locator("#cell").click();
    await page.keyboard.type("a b.");
    assert.equal(await page.locator("#cell").inputValue(), "a b.");
    const requests = async () => (await page.locator(".facts dd").allTextContents())[3];
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(await requests(), "0");
    assert.equal(await page.locator("#output").getAttribute("data-lm-suppress-shortcuts"), "true", "JupyterLab's shortcuts are told to keep out");
    await page.locator(".widget h1").click();
    await page.keyboard.press(".");
    await until("a request", async () => (await requests()) !== "0");
    await page.keyboard.press(" ");
    await until("that it runs", async () => (await position(page)) > 0.01);
    // A key press activates the focused button once.
    await page.locator("button.play").focus();
    await page.keyboard.press(" ");
    await until("that it is paused", async () => (await page.locator("button.play .hidden").textContent()) === "Play");
    await close(page);
});

test("light or dark is the notebook's", async () => {
    const page = await show({ order: threeStreams(["FDP"]) });
    await page.waitForSelector(".transport");
    const paper = () => page.locator(".warp-studio").evaluate((place) => getComputedStyle(place).backgroundColor);
    assert.equal(await paper(), "rgb(255, 255, 255)");
    await page.evaluate(() => (document.body.dataset.jpThemeLight = "false"));
    await until("the dark", async () => (await paper()) === "rgb(13, 17, 23)");
    await close(page);
});

test("what goes wrong is said in the output, with the remedy", async () => {
    const nobody = createServer();
    await new Promise((listening) => nobody.listen(0, "127.0.0.1", listening));
    const closed = nobody.address().port;
    await new Promise((ended) => nobody.close(ended));
    for (const [traits, says] of [
        [{ order: threeStreams(["FPD"]) }, /no variant or grid value FPD/],
        [{ order: threeStreams(["FDP"]), url: `http://127.0.0.1:${closed}` }, new RegExp(`cannot reach the notebook's kernel at http://127.0.0.1:${closed}.*ssh -L ${closed}:127.0.0.1:${closed} `)],
        [{ order: threeStreams(["FDP"]), token: "of another kernel's process" }, /cannot reach the notebook's kernel.*run the cell again/],
        [{}, /neither an order nor a session/],
        [{ session: "s99" }, /This run has ended\. Run the cell again/],
    ]) {
        const page = await show(traits);
        await until(String(says), async () => says.test(await page.locator(".warp-studio").innerText()));
        await close(page);
    }
});
