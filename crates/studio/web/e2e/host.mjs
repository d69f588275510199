// What the end-to-end tests share: the command, its server, a browser, and what a person sees and does.
//
//   WARP (the command; ../../../target/debug/warp) -> warp studio --listen 127.0.0.1:0 -> address -> Chromium -> page
//
// Chromium is Debian's, or CHROMIUM says where another one is. With WARP_PAGE=dist the page is that of dist/ as `npm run build` has made it, in
// front of the command's server: so that a changed page can be tried before the command is built anew.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const WARP = process.env.WARP ?? resolve(import.meta.dirname, "../../../../target/debug/warp");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** Nothing here takes so long; a busy machine may need patience. */
export const PATIENCE_MS = 120_000;

export const workFolder = mkdtempSync(join(tmpdir(), "warp-studio-"));
process.on("exit", () => rmSync(workFolder, { recursive: true, force: true }));
// Nothing of the person who runs the tests is read or written.
const environment = { ...process.env, WARP_RUNS: join(workFolder, "runs"), NO_COLOR: "1", DISPLAY: "", WAYLAND_DISPLAY: "" };

/** What the command prints; fails where it does. */
export async function warp(...parameters) {
    const { stdout } = await promisify(execFile)(WARP, parameters, { cwd: workFolder, env: environment, maxBuffer: 64 << 20 });
    return stdout;
}

/** A server, until `stop` or `kill`. */
export class Server {
    /** Those that have not ended. */
    static running = new Set();

    constructor(child, address, introduction) {
        Server.running.add(this);
        child.once("exit", () => Server.running.delete(this));
        this.child = child;
        this.address = address;
        this.introduction = introduction;
    }

    /** Starts `warp PARAMETERS`, which prints an address of the page; an object among them is of its environment. */
    static start(...given) {
        const parameters = given.filter((one) => typeof one === "string");
        return new Promise((resolveServer, reject) => {
            const child = spawn(WARP, parameters, { cwd: workFolder, env: Object.assign({}, environment, ...given.filter((one) => typeof one === "object")), stdio: ["ignore", "pipe", "pipe"] });
            let said = "";
            const timer = setTimeout(() => reject(new Error(`no address after ${PATIENCE_MS} ms: ${said}`)), PATIENCE_MS);
            const hear = (bytes) => {
                said += bytes;
                const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(said);
                if (found === null) return;
                clearTimeout(timer);
                resolveServer(new Server(child, found[0], said));
            };
            child.stdout.on("data", hear);
            child.stderr.on("data", hear);
            child.once("exit", (code) => {
                // After it has said where it is, this refuses nothing any more.
                clearTimeout(timer);
                reject(new Error(`warp ${parameters.join(" ")} ended with ${code}: ${said}`));
            });
        });
    }

    /** Ends it in order; resolves to its exit code. */
    stop() {
        return this.end("SIGINT");
    }

    /** As a crash does. */
    kill() {
        return this.end("SIGKILL");
    }

    end(signal) {
        return new Promise((resolveExit) => {
            if (this.child.exitCode !== null || this.child.signalCode !== null) return resolveExit(this.child.exitCode);
            this.child.once("exit", (code) => resolveExit(code));
            this.child.kill(signal);
        });
    }

    async json(path, options = {}) {
        const answer = await fetch(new URL(path, this.address), options);
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
        return text === "" ? null : JSON.parse(text);
    }

    /** Begins a session; resolves to its id. */
    async begin(order) {
        const { id } = await this.json("api/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(order) });
        return id;
    }
}

/** Whether the page of dist/ is shown in place of the command's. */
const isPageOfDist = process.env.WARP_PAGE === "dist";

export async function startBrowser() {
    // A page that came from here and not from the network may not talk to a server of this machine, unless it is said that it may.
    const more = isPageOfDist ? ["--disable-features=LocalNetworkAccessChecks,HttpsUpgrades"] : [];
    return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });
}

/** The page from dist/; what is asked below /api/ goes to the server. */
async function pageFromDist(page) {
    const dist = resolve(import.meta.dirname, "../dist");
    await page.route((address) => address.hostname === "127.0.0.1" && !address.pathname.startsWith("/api/"), async (route) => {
        const path = new URL(route.request().url()).pathname;
        const file = join(dist, path === "/" ? "index.html" : path);
        if (file.startsWith(dist) && existsSync(file)) await route.fulfill({ path: file });
        else await route.continue();
    });
}

/** A page that fails the test if anything goes wrong in it that it does not show. */
export async function newPage(browser, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    if (isPageOfDist) await pageFromDist(page);
    page.setDefaultTimeout(PATIENCE_MS);
    page.mistakes = [];
    page.on("pageerror", (error) => page.mistakes.push(error.message));
    return page;
}

/** An order of the three streams on a small scaled model, a lane for each of these variants. */
export function threeStreams(variants, more = {}) {
    const lanes = variants.map((name) => ({ name, variants: [name, "80/20"], set: {} }));
    return { experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/2048", drive_writes: 2, precondition_drive_writes: null, timed: null, seed: 1, forks: [], lanes, ...more };
}

/** What the command says of the same runs, by variant: the cells of its JSON. */
export async function commandCells(...more) {
    const text = await warp("run", "three_stream", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "2", "--no-keep", "--json", ...more);
    const cells = JSON.parse(text).cells.filter((cell) => cell.grid.overwrite === "80/20");
    return Object.fromEntries(cells.map((cell) => [cell.variant, cell]));
}

/** The write amplification of each lane as the page shows it. */
export const wafs = (page) => page.locator(".lane-waf b").allTextContents();

/** Drive-writes that the page says the run is at. */
export const position = async (page) => Number(await page.locator(".position b").textContent());

/** As `page.waitForFunction`, but of a question to be asked from here. */
export async function until(what, question) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await question())) {
        assert.ok(Date.now() < end, `${what} did not come in ${PATIENCE_MS} ms`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/** Every lane has come to its end. */
export const isOver = (page) => until("the end of the run", async () => {
    const phases = await page.locator(".lane-phase").allTextContents();
    return phases.length > 0 && phases.every((phase) => phase === "ended");
});

/** The run stands at this many drive-writes, and every lane says so: a place is passed through on the way to it, too. */
export const standsAt = (page, place) => until(`standing at ${place} drive-writes`, async () => {
    const phases = await page.locator(".lane-phase").allTextContents();
    const hosts = (await page.locator(".lane .facts div:first-child dd").allTextContents()).map((text) => Number.parseFloat(text));
    const places = [...hosts, await position(page)];
    return hosts.length > 0 && phases.every((phase) => phase === "paused") && places.every((one) => Math.abs(one - place) < 0.015);
});

/** Moves the slider to a share of the run, as dragging it and letting go does. */
export async function seek(page, share) {
    await page.locator(".slider input").evaluate((slider, to) => {
        slider.value = String(Math.round(to * Number(slider.max)));
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        slider.dispatchEvent(new Event("change", { bubbles: true }));
    }, share);
}

/** As fast as it goes. */
export async function playToTheEnd(page) {
    await page.getByLabel("Speed").selectOption({ label: "full speed" });
    await page.locator("button.play").click();
    await isOver(page);
}
