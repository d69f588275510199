// Shared parts of the end-to-end tests: the command, its server, a browser, and the actions of a
// user.
//
//   WARP (default ../../../target/debug/warp) -> warp studio --listen 127.0.0.1:0 -> address
//     -> Chromium -> page
//
// Chromium is Debian's, or the path in CHROMIUM. With WARP_PAGE=dist the tests load the page of
// dist/ and send its requests to the command's server. So a changed page can be tested before the
// command is built again.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const WARP = process.env.WARP ?? resolve(import.meta.dirname, "../../../../target/debug/warp");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** Generous upper bound for a busy machine. */
export const PATIENCE_MS = 120_000;

export const workFolder = mkdtempSync(join(tmpdir(), "warp-studio-"));
process.on("exit", () => rmSync(workFolder, { recursive: true, force: true }));
// The tests neither read nor write the user's data.
const environment = { ...process.env, WARP_RUNS: join(workFolder, "runs"), NO_COLOR: "1", DISPLAY: "", WAYLAND_DISPLAY: "" };

/** Returns the output of the command, and throws if the command fails. */
export async function warp(...parameters) {
    const { stdout } = await promisify(execFile)(WARP, parameters, { cwd: workFolder, env: environment, maxBuffer: 64 << 20 });
    return stdout;
}

/** Server that runs until `stop` or `kill`. */
export class Server {
    /** Running servers. */
    static running = new Set();

    constructor(child, address, introduction) {
        Server.running.add(this);
        child.once("exit", () => Server.running.delete(this));
        this.child = child;
        this.address = address;
        this.introduction = introduction;
    }

    /**
     * Starts `warp PARAMETERS`, which prints an address of the page. An object among the
     * parameters sets environment variables.
     */
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
                // After the address is known, the promise can no longer be rejected.
                clearTimeout(timer);
                reject(new Error(`warp ${parameters.join(" ")} ended with ${code}: ${said}`));
            });
        });
    }

    /** Stops the server in an orderly way. Resolves to its exit code. */
    stop() {
        return this.end("SIGINT");
    }

    /** Kills the server, as a crash would. */
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

    /** Starts a session. Resolves to its identifier. */
    async begin(order) {
        const { id } = await this.json("api/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(order) });
        return id;
    }
}

/** True to load the page of dist/ instead of the command's. */
const isPageOfDist = process.env.WARP_PAGE === "dist";

export async function startBrowser() {
    // Chromium blocks requests to a local server from a page that is not from the network, unless
    // this check is off.
    const more = isPageOfDist ? ["--disable-features=LocalNetworkAccessChecks,HttpsUpgrades"] : [];
    return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });
}

/** Loads the page from dist/. Requests below /api/ go to the server. */
async function pageFromDist(page) {
    const dist = resolve(import.meta.dirname, "../dist");
    await page.route((address) => address.hostname === "127.0.0.1" && !address.pathname.startsWith("/api/"), async (route) => {
        const path = new URL(route.request().url()).pathname;
        const file = join(dist, path === "/" ? "index.html" : path);
        if (file.startsWith(dist) && existsSync(file)) await route.fulfill({ path: file });
        else await route.continue();
    });
}

/** Opens a page that fails the test on any error that the page does not show. */
export async function newPage(browser, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    if (isPageOfDist) await pageFromDist(page);
    page.setDefaultTimeout(PATIENCE_MS);
    page.mistakes = [];
    page.on("pageerror", (error) => page.mistakes.push(error.message));
    return page;
}

/** Order of the three streams on a small scaled model, with a lane for each variant. */
export function threeStreams(variants, more = {}) {
    const lanes = variants.map((name) => ({ name, variants: [name, "80/20"], set: {} }));
    return { experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/2048", drive_writes: 2, precondition_drive_writes: null, timed: null, seed: 1, forks: [], lanes, ...more };
}

/** Results of the same runs from the command, by variant. These are the cells of its JSON. */
export async function commandCells(...more) {
    const text = await warp("run", "three_stream", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "2", "--no-keep", "--json", ...more);
    const cells = JSON.parse(text).cells.filter((cell) => cell.grid.overwrite === "80/20");
    return Object.fromEntries(cells.map((cell) => [cell.variant, cell]));
}

/** Displayed write amplification of each lane. */
export const wafs = (page) => page.locator(".lane-waf b").allTextContents();

/** Displayed position of the run, drive writes. */
export const position = async (page) => Number(await page.locator(".position b").textContent());

/** Like `page.waitForFunction`, but the condition runs in the test. */
export async function until(what, question) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await question())) {
        assert.ok(Date.now() < end, `${what} did not come in ${PATIENCE_MS} ms`);
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/** Waits until each lane is at its end. */
export const isOver = (page) => until("the end of the run", async () => {
    const phases = await page.locator(".lane-phase").allTextContents();
    return phases.length > 0 && phases.every((phase) => phase === "ended");
});

/**
 * Waits until the run has stopped at this number of drive writes in all lanes. A run also
 * passes positions on the way.
 */
export const standsAt = (page, place) => until(`standing at ${place} drive-writes`, async () => {
    const phases = await page.locator(".lane-phase").allTextContents();
    const hosts = (await page.locator(".lane .facts div:first-child dd").allTextContents()).map((text) => Number.parseFloat(text));
    const places = [...hosts, await position(page)];
    return hosts.length > 0 && phases.every((phase) => phase === "paused") && places.every((one) => Math.abs(one - place) < 0.015);
});

/** Moves the slider to a share of the run, as a drag would. */
export async function seek(page, share) {
    await page.locator(".slider input").evaluate((slider, to) => {
        slider.value = String(Math.round(to * Number(slider.max)));
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        slider.dispatchEvent(new Event("change", { bubbles: true }));
    }, share);
}

/** Plays at maximum speed to the end. */
export async function playToTheEnd(page) {
    await page.getByLabel("Speed").selectOption({ label: "full speed" });
    await page.locator("button.play").click();
    await isOver(page);
}
