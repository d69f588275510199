// Looks at the page in Chromium: a picture of each view, at the width of a desktop and of a phone, light and dark.
//
//   npm run preview &   node dev/look.mjs [--to FOLDER] [--only NAME] [--at ADDRESS]
//
// Needs Debian's `chromium` (or CHROMIUM, a path to another one).
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const given = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const folder = given("to", "pictures");
const only = given("only", "");
const address = given("at", "http://127.0.0.1:5178/");
mkdirSync(folder, { recursive: true });

export const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

const order = (lanes, more = {}) => ({ experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/512", write: 3, prefill: null, timed: null, seed: 1, forks: [], lanes: lanes.map((name) => ({ name, only: [name, "zipf 1.2"], set: {} })), ...more });

async function begun(page, what) {
    const answer = await page.request.post(`${address}api/sessions`, { data: what });
    return (await answer.json()).id;
}

/** Plays until the host has written so many drive-writes, then pauses. */
async function playTo(page, capacities) {
    await page.waitForSelector(".transport");
    await page.locator(".slider input").evaluate((slider, share) => {
        slider.value = String(Math.round(share * Number(slider.max)));
        slider.dispatchEvent(new Event("change", { bubbles: true }));
    }, capacities / 3);
    // The slider is where it was moved to at once; the lanes come there.
    await page.waitForFunction((least) => {
        const lanes = [...document.querySelectorAll(".lane .facts div:first-child dd")];
        return lanes.length > 0 && lanes.every((one) => Number.parseFloat(one.textContent) >= least - 0.02);
    }, capacities, { timeout: 120_000 });
    await page.waitForTimeout(900);
}

const VIEWS = {
    start: async (page) => {
        await page.goto(address);
        await page.waitForSelector(".choices li");
    },
    own: async (page) => {
        await page.goto(address);
        await page.getByText("A device and a workload").click();
        await page.waitForSelector(".cm-content");
        await page.waitForTimeout(600);
    },
    run: async (page) => {
        const id = await begun(page, order(["FDP"]));
        await page.goto(`${address}#/session/${id}`);
        await playTo(page, 2.2);
    },
    lanes: async (page) => {
        const id = await begun(page, order(["FDP", "Mixed", "NoFDP"]));
        await page.goto(`${address}#/session/${id}`);
        await playTo(page, 2.2);
    },
    fork: async (page) => {
        const id = await begun(page, order(["NoFDP"]));
        await page.goto(`${address}#/session/${id}`);
        await playTo(page, 1.6);
        await page.getByRole("button", { name: "Fork from here" }).click();
        await page.waitForTimeout(300);
    },
    runs: async (page) => {
        await page.goto(`${address}#/compare`);
        await page.waitForSelector("tbody tr");
        for (const box of (await page.locator("tbody input").all()).slice(0, 2)) await box.check();
    },
    tour: async (page) => {
        await page.goto(`${address}#/tour`);
        await page.waitForSelector(".stories");
    },
    story: async (page) => {
        await page.goto(`${address}#/tour/mixing`);
        await page.waitForSelector(".caption");
        await playTo(page, 1.5);
        await page.waitForTimeout(1500);
    },
    drive: async (page) => {
        await page.goto(`${address}#/drive`);
        await page.waitForSelector(".hosts tbody small", { timeout: 10_000 });
        await page.waitForTimeout(2500);
    },
    large: async (page) => {
        const id = await begun(page, order(["NoFDP"], { scale: "1/1" }));
        await page.goto(`${address}#/session/${id}`);
        await playTo(page, 1.5);
    },
    lost: async (page) => {
        await page.goto(`${address}#/session/none`);
        await page.waitForSelector(".notice");
    },
    // What follows reads numbers and is made only by name.
};

for (const [name, go] of Object.entries(VIEWS)) {
    if (only !== "" && !only.split(",").includes(name)) continue;
    for (const [width, height] of [[1280, 900], [390, 844]]) {
        for (const colorScheme of ["light", "dark"]) {
            const page = await browser.newPage({ viewport: { width, height }, colorScheme, deviceScaleFactor: 1 });
            page.on("pageerror", (error) => console.log(`${name} ${width} ${colorScheme}: ${error.message}`));
            page.on("console", (message) => message.type() === "error" && console.log(`${name} ${width}: ${message.text()}`));
            await go(page);
            const file = join(folder, `${name}-${width === 390 ? "phone" : "desktop"}-${colorScheme}.png`);
            // What sticks to the window would stand in the middle of a picture of the whole page.
            const whole = !["fork", "story"].includes(name);
            if (whole) await page.addStyleTag({ content: ".top, .transport, .caption { position: static !important }" });
            await page.screenshot({ path: file, fullPage: whole });
            const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            console.log(`${file}${over > 0 ? ` is ${over} pixels too wide` : ""}`);
            if (over > 0) {
                const culprits = await page.evaluate(() => [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && one.closest(".scroll, .choice, .cm-scroller") === null).slice(0, 5).map((one) => `${one.tagName} ${one.className} ${Math.round(one.getBoundingClientRect().right)}`));
                console.log(culprits);
            }
            await page.close();
        }
    }
}
await browser.close();
