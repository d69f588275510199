// Takes pictures of each view of the page in Chromium, and of each error state, at the width of a
// desktop and of a phone, light and dark. This command makes the pictures of docs/figures/studio/.
//
//   WARP=../../../target/debug/warp node dev/look.mjs --to ../../../docs/figures/studio
//
// The script starts `warp studio`, `warp serve --studio` and a host that writes, and ends them.
// `--only NAME,NAME` takes some of the views. `--plain` leaves the pictures as Chromium made them.
// WARP_PAGE=dist shows the page of dist/ instead of the command's.
//
// Debian's `chromium` (or the path in CHROMIUM) and `imagemagick` are necessary. The exit code is 1
// if a page is wider than its window or reports an error.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newPage, Server, startBrowser, warp, workFolder } from "../e2e/host.mjs";

const given = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : process.argv[at + 1];
};
const folder = given("to", "pictures");
const only = given("only", "").split(",").filter(Boolean);
const isPlain = process.argv.includes("--plain");
mkdirSync(folder, { recursive: true });

const SIZES = { desktop: { width: 1280, height: 900, most: 1700 }, phone: { width: 390, height: 844, most: 2400 } };
/** A view that takes longer counts as missing. */
const LOOK_MS = 60_000;
/** Drive writes of the shown runs. */
const WRITES = 3;

const order = (lanes, more = {}) => ({ experiment: "three_stream", workload: null, device: "ssd_a", scale: "1/512", drive_writes: WRITES, precondition_drive_writes: null, timed: null, seed: 1, forks: [], lanes: lanes.map((name) => ({ name, variants: [name, "zipf 1.2"], set: {} })), ...more });
const lane = (name, set = {}, only = ["NoFDP", "zipf 1.2"]) => ({ name, variants: only, set });

/** Advances all lanes to a number of drive writes. */
async function goTo(page, capacities) {
    await page.waitForSelector(".transport");
    await page.locator(".slider input").evaluate((slider, share) => {
        slider.value = String(Math.round(share * Number(slider.max)));
        slider.dispatchEvent(new Event("change", { bubbles: true }));
    }, capacities / WRITES);
    // The slider moves at once, and the lanes arrive later.
    await page.waitForFunction((least) => {
        const lanes = [...document.querySelectorAll(".lane")].filter((one) => one.querySelector("[data-phase=failed]") === null);
        return lanes.length > 0 && lanes.every((one) => Number.parseFloat(one.querySelector(".facts dd").textContent) >= least - 0.02);
    }, capacities);
    await page.waitForTimeout(900);
}

/** Sessions of the current view, shared by its pictures. */
const begun = new Map();

async function sessionOf(what) {
    const key = JSON.stringify(what);
    if (!begun.has(key)) begun.set(key, await studio.begin(what));
    return begun.get(key);
}

async function openRun(page, what, capacities) {
    const id = await sessionOf(what);
    await page.goto(`${studio.address}#/session/${id}`);
    await goTo(page, capacities);
}

async function openOwn(page) {
    await page.goto(studio.address);
    await page.getByText("A device and a workload").click();
    await page.waitForSelector(".cm-content");
}

async function replaceText(page, text) {
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText(text);
}

const MANY_HANDLES = Array.from({ length: 128 }, (_, handle) => `[stream-${handle}]\nrw=randwrite\nbs=16k\noffset=${Math.floor((handle * 100) / 128)}%\nsize=1%\nio_size=10%\nfdp=1\nfdp_pli=${handle}\n`).join("\n");
/** Trace with an invalid last line. Lanes fail when they reach it. */
const BROKEN_TRACE = `fio version 2 iolog\n/dev/x add\n/dev/x open\n${Array.from({ length: 6000 }, (_, i) => `/dev/x write ${((i * 7919) % 50_000) * 4096} 65536`).join("\n")}\n/dev/x wrte 12 x\n`;
const LONG = "A name of eighty bytes, written without a thought for whoever has to read it all";

const VIEWS = {
    start: async (page) => {
        await page.goto(studio.address);
        await page.waitForSelector(".choices li");
    },
    own: async (page) => {
        await openOwn(page);
        await page.waitForTimeout(600);
    },
    run: async (page) => openRun(page, order(["FDP"]), 2.2),
    lanes: async (page) => openRun(page, order(["FDP", "Mixed", "NoFDP"]), 2.2),
    fork: async (page) => {
        await openRun(page, order(["NoFDP"]), 1.6);
        await page.getByRole("button", { name: "Fork from here" }).click();
        await page.waitForTimeout(300);
    },
    forked: async (page) => openRun(page, order(["NoFDP"], { forks: [{ of: 0, name: "OP 28 %", at_host_bytes: 15e9, set: { "geometry.over_provisioning": 0.28 } }] }), 2.6),
    timed: async (page) => {
        await openRun(page, order(["FDP"], { scale: "1/2048", timed: true }), 1.8);
        await page.locator("button.play").click();
        await page.waitForTimeout(2500);
        await page.locator(".curves").getByText("latency").click();
        await page.waitForTimeout(1500);
    },
    runs: async (page) => {
        await page.goto(`${studio.address}#/compare`);
        await page.waitForSelector("tbody tr");
        // The newest run is a whole experiment. The two runs before it have one cell each.
        for (const box of (await page.locator("tbody input").all()).slice(1, 3)) await box.check();
    },
    tour: async (page) => {
        await page.goto(`${studio.address}#/tour`);
        await page.waitForSelector(".stories");
    },
    story: async (page) => {
        await page.goto(`${studio.address}#/tour/mixing`);
        await page.waitForSelector(".caption");
        await goTo(page, 1.5);
        await page.waitForTimeout(1500);
    },
    drive: async (page) => {
        const served = await writtenTo();
        await page.goto(`${served.address}#/drive`);
        await page.waitForSelector(".hosts tbody small");
        await page.waitForTimeout(3500);
    },
    large: async (page) => openRun(page, order(["NoFDP"], { scale: "1/64", lanes: [lane("NoFDP", { "geometry.reclaim_unit_bytes": "128MiB" })] }), 1.5),
    // Empty states and error states follow.
    "runs-empty": async (page) => {
        await page.goto(`${(await emptyStudio()).address}#/compare`);
        await page.waitForSelector(".empty");
    },
    refused: async (page) => {
        await openOwn(page);
        await replaceText(page, "[hot]\nrw=randwrite\nbs=4k\nsize=50%\nrandom_distribution=zpf:1.2\n\n[cold]\nrw=write\nbs=128k\noffset=50%\nsize=70%\nfdp_plid=3\n");
        await page.locator(".cm-lintRange-error, .cm-lint-marker-error").first().waitFor();
        await page.waitForTimeout(500);
    },
    unknown: async (page) => {
        await page.goto(`${studio.address}#/session/none`);
        await page.waitForSelector(".notice");
    },
    lost: async (page) => {
        const server = await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0");
        const id = await server.begin(order(["FDP", "NoFDP"]));
        await page.goto(`${server.address}#/session/${id}`);
        await goTo(page, 1.3);
        await server.kill();
        await page.getByText("The server does not answer").waitFor();
    },
    failed: async (page) => {
        const what = order([], { experiment: null, workload: { name: "broken.log", text: BROKEN_TRACE }, device: "ssd_a", scale: "1/4096", lanes: [lane("as it is", {}, []), lane("OP 28 %", { "geometry.over_provisioning": 0.28 }, [])] });
        await page.goto(`${studio.address}#/session/${await sessionOf(what)}`);
        await page.waitForSelector(".transport");
        if ((await page.locator("[data-phase=failed]").count()) === 0) await page.locator("button.play").click();
        await page.locator("[data-phase=failed]").nth(1).waitFor();
        await page.waitForTimeout(500);
    },
    begun: async (page) => {
        const id = await sessionOf(order(["FDP", "NoFDP"]));
        await page.goto(`${studio.address}#/session/${id}`);
        await page.waitForSelector(".transport");
        await page.waitForTimeout(500);
    },
    many: async (page) => {
        const what = order([], { experiment: null, workload: { name: "many.fio", text: MANY_HANDLES }, device: "ssd_a", scale: "1/1024", lanes: [lane(LONG, { "handles.count": 128 }, [])] });
        await openRun(page, what, 1.6);
    },
    eight: async (page) => {
        const points = [0.07, 0.1, 0.15, 0.2, 0.28, 0.4, 0.5];
        await openRun(page, order([], { scale: "1/1024", lanes: [lane(LONG), ...points.map((share) => lane(`OP ${Math.round(share * 100)} %`, { "geometry.over_provisioning": share }))] }), 1.6);
    },
};

/** Names of the views that are states. */
const STATES = new Set(["runs-empty", "refused", "unknown", "lost", "failed", "begun", "many", "eight"]);

let studio;
let emptyOne;
let servedOne;

/** Starts a studio without stored runs. */
async function emptyStudio() {
    emptyOne ??= await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0", { WARP_RUNS: join(workFolder, "no-runs") });
    return emptyOne;
}

/** Starts a served drive and a host that writes until the end. */
async function writtenTo() {
    if (servedOne !== undefined) return servedOne;
    servedOne = await Server.start("serve", "--device", "ssd_a", "--capacity", "256M", "--data", "null", "--tcp", "127.0.0.1:0", "--studio", "127.0.0.1:0", "--quiet");
    const port = /-s (\d+)/.exec(servedOne.introduction)[1];
    await writeFile(join(workFolder, "host.fio"), "[cold]\nrw=write\nbs=64k\nsize=60%\nio_size=400m\nfdp=1\nfdp_pli=0\n[hot]\nrw=randwrite\nbs=4k\noffset=60%\nsize=38%\nio_size=400m\nnorandommap\nfdp=1\nfdp_pli=1\n");
    (async () => {
        while (Server.running.has(servedOne)) await warp("run", "host.fio", "--target", `tcp:127.0.0.1:${port}`, "--json").catch(() => {});
    })();
    return servedOne;
}

/** Ends all sessions, which otherwise hold memory for ten minutes. */
async function endSessions() {
    begun.clear();
    for (const { id } of await studio.json("api/sessions")) await studio.json(`api/sessions/${id}`, { method: "DELETE" });
}

async function take(name, go, browser, size, colorScheme) {
    const { width, height, most } = SIZES[size];
    const mistakes = [];
    const page = await newPage(browser, { viewport: { width, height }, colorScheme, deviceScaleFactor: 1, hasTouch: size === "phone" });
    page.setDefaultTimeout(LOOK_MS);
    await go(page).catch((error) => {
        throw new Error([error.message.split("\n")[0], ...page.mistakes].join("; "));
    });
    const file = join(folder, `${name}-${size}-${colorScheme}.png`);
    // Elements that stick to the window would appear in the middle of a picture of the whole page.
    const isWhole = !["fork", "story"].includes(name);
    if (isWhole) await page.addStyleTag({ content: ".top, .transport, .caption { position: static !important }" });
    const tall = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.screenshot({ path: file, fullPage: isWhole, ...(isWhole ? { clip: { x: 0, y: 0, width, height: Math.min(tall, most) } } : {}) });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (over > 0) {
        const culprits = await page.evaluate(() => [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && one.closest(".scroll, .choice, .cm-scroller") === null).slice(0, 5).map((one) => `${one.tagName} ${one.className} ${Math.round(one.getBoundingClientRect().right)}`));
        mistakes.push(`${over} pixels too wide: ${culprits.join("; ")}`);
    }
    mistakes.push(...page.mistakes);
    if (!isPlain) execFileSync("convert", [file, "-strip", "+dither", "-colors", "64", "-define", "png:compression-level=9", `PNG8:${file}`]);
    console.log(`${file}${mistakes.map((one) => `\n  ${one}`).join("")}`);
    await page.close();
    return mistakes.length;
}

let mistakes = 0;
const browser = await startBrowser();
try {
    studio = await Server.start("studio", "--no-open", "--listen", "127.0.0.1:0");
    if (only.length === 0 || only.includes("runs")) {
        await copyFile(join(import.meta.dirname, "../../../../jobs/three_stream.fio"), join(workFolder, "three_stream.fio"));
        for (const what of [["three_stream.fio"], ["three_stream.fio", "--set", "geometry.over_provisioning=0.28"], ["three_stream"]]) await warp("run", ...what, "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "4");
    }
    for (const [name, go] of Object.entries(VIEWS)) {
        if (only.length > 0 && !only.includes(name)) continue;
        for (const size of Object.keys(SIZES)) {
            for (const colorScheme of ["light", "dark"]) {
                // States need one picture for each width.
                if (STATES.has(name) && (size === "desktop") !== (colorScheme === "light")) continue;
                try {
                    mistakes += await take(name, go, browser, size, colorScheme);
                } catch (error) {
                    mistakes += 1;
                    console.log(`${name} ${size} ${colorScheme}: ${error.message}`);
                }
            }
        }
        await endSessions();
    }
} finally {
    await browser.close();
    await Promise.all([...Server.running].map((one) => one.stop()));
}
process.exitCode = mistakes > 0 ? 1 : 0;
