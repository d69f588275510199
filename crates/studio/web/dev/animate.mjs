// Makes the animated picture of README: two drives side by side, from empty to steady.
//
//   warp studio --no-open &   node dev/animate.mjs --at http://127.0.0.1:8090/ --to ../../../docs/figures/studio.gif
//
// Needs Debian's `chromium` and `imagemagick`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const given = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const address = given("at", "http://127.0.0.1:8090/");
const to = given("to", "studio.gif");
/** Drive-writes of the run, and pictures of it. */
const WRITES = 3;
const PICTURES = 30;
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const folder = mkdtempSync(join(tmpdir(), "warp-animate-"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
try {
    const page = await browser.newPage({ viewport: { width: 960, height: 560 }, colorScheme: "light" });
    const lanes = ["FDP", "NoFDP"].map((name) => ({ name, only: [name, "zipf 1.2"], set: {} }));
    const order = { experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/512", write: WRITES, prefill: null, timed: null, seed: 1, lanes, forks: [] };
    const { id } = await (await page.request.post(`${address}api/sessions`, { data: order })).json();
    await page.goto(`${address}#/session/${id}`);
    await page.waitForSelector(".transport");
    await page.addStyleTag({ content: ".top, .transport, .actions, .below { display: none !important } main { padding-top: 12px !important } .lane-side { position: absolute !important; left: -9999px }" });
    const files = [];
    for (let picture = 1; picture <= PICTURES; picture += 1) {
        const share = picture / PICTURES;
        await page.locator(".slider input").evaluate((slider, value) => {
            slider.value = String(Math.round(value * Number(slider.max)));
            slider.dispatchEvent(new Event("change", { bubbles: true }));
        }, share);
        // The slider is where it was moved to at once; the lanes come there.
        await page.waitForFunction((least) => {
            const lanes = [...document.querySelectorAll(".lane .facts div:first-child dd")];
            return lanes.length > 0 && lanes.every((one) => Number.parseFloat(one.textContent) >= least - 0.02);
        }, share * WRITES, { timeout: 120_000 });
        await page.waitForTimeout(300);
        const file = join(folder, `${String(picture).padStart(3, "0")}.png`);
        await page.screenshot({ path: file });
        files.push(file);
    }
    execFileSync("convert", ["-delay", "12", ...files.slice(0, -1), "-delay", "250", files.at(-1), "-colors", "48", "+dither", "-layers", "OptimizeFrame", "-loop", "0", to]);
    console.log(to);
} finally {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
}
