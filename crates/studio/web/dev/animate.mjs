// Makes the animated picture of README, two drives side by side from empty to steady.
//
//   WARP=../../../target/debug/warp node dev/animate.mjs --to ../../../docs/figures/studio.gif
//
// The script starts `warp studio` and ends it. WARP_PAGE=dist shows the page of dist/ instead of
// the command's. Debian's `chromium` and `imagemagick` are necessary.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { newPage, Server, startBrowser, workFolder } from "../e2e/host.mjs";

const given = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const to = given("to", "studio.gif");
/** Drive writes of the run, and number of pictures. The last picture stays longer. */
const WRITES = 3;
const PICTURES = 36;
const SHORT_MS = 140;
const LONG_MS = 3000;
const WIDTH = 880;

/** Style sheet that shows only the sentence, the maps and the curves, without controls. */
const ONLY_WHAT_IS_SEEN = `
    .top, .transport, .actions, .events, .lane-phase, .unit-line, .curves .bar, .run-head, .legend span:last-child { display: none !important }
    main { padding: 8px 20px 0 !important }
    .headline { padding-top: 0 !important; padding-bottom: 12px !important; margin-bottom: 12px !important }
    .headline .sentence { font-size: 1.05rem !important }
    .lane-side { position: absolute !important; left: -9999px }
    .lanes { gap: 24px !important; --columns: 2 !important }
    .lane { gap: 8px !important }
    .below { grid-template-columns: minmax(0, 1fr) !important; margin-top: 0 !important; padding-top: 12px !important }
`;

const folder = join(workFolder, "pictures");
mkdirSync(folder);
const browser = await startBrowser();
try {
    const studio = await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0");
    const page = await newPage(browser, { viewport: { width: WIDTH, height: 1000 }, colorScheme: "light" });
    const lanes = ["FDP", "NoFDP"].map((name) => ({ name, variants: [name, "zipf 1.2"], set: {} }));
    const id = await studio.begin({ experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/512", write: WRITES, precondition_drive_writes: null, timed: null, seed: 1, lanes, forks: [] });
    await page.goto(`${studio.address}#/session/${id}`);
    await page.waitForSelector(".transport");
    await page.addStyleTag({ content: ONLY_WHAT_IS_SEEN });
    const files = [];
    for (let picture = 1; picture <= PICTURES; picture += 1) {
        const share = picture / PICTURES;
        await page.locator(".slider input").evaluate((slider, value) => {
            slider.value = String(Math.round(value * Number(slider.max)));
            slider.dispatchEvent(new Event("change", { bubbles: true }));
        }, share);
        // The slider moves at once, and the lanes arrive later.
        await page.waitForFunction((least) => {
            const lanes = [...document.querySelectorAll(".lane .facts div:first-child dd")];
            return lanes.length > 0 && lanes.every((one) => Number.parseFloat(one.textContent) >= least - 0.02);
        }, share * WRITES);
        await page.waitForTimeout(300);
        const file = join(folder, `${String(picture).padStart(3, "0")}.png`);
        const height = Math.ceil(await page.evaluate(() => document.querySelector(".curves").getBoundingClientRect().bottom)) + 8;
        await page.screenshot({ path: file, clip: { x: 0, y: 0, width: WIDTH, height } });
        files.push(file);
    }
    execFileSync("convert", ["-delay", String(SHORT_MS / 10), ...files.slice(0, -1), "-delay", String(LONG_MS / 10), files.at(-1), "+dither", "-colors", "64", "-layers", "OptimizeFrame", "-loop", "0", to]);
    console.log(to);
} finally {
    await browser.close();
    await Promise.all([...Server.running].map((one) => one.stop()));
}
