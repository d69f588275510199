// Opens the page of a served drive in Chromium for tests/host/run, and writes its values into
// files.
//
//   node dev/watch.mjs http://127.0.0.1:PORT/ TOKEN-FILE FOLDER
//
// FOLDER/open names the browser. FOLDER/hosts has IOPS and queue depth of a host on vfio-user, as
// soon as both are above zero. FOLDER/waf has the current write amplification. The script runs
// until a signal. tests/host/page.py does the same without a browser.
import { readFile, rename, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { newPage, startBrowser } from "../e2e/host.mjs";

const LOOK_EVERY_MS = 250;
const [address, tokenFile, folder] = process.argv.slice(2);
if (folder === undefined) {
    console.error("usage: node dev/watch.mjs ADDRESS TOKEN-FILE FOLDER");
    process.exit(2);
}

/** Writes a file that no reader sees incomplete. */
async function put(name, text) {
    const file = join(folder, name);
    await writeFile(`${file}.part`, `${text}\n`);
    await rename(`${file}.part`, file);
}

/** Parses a number in the page's form, such as 12.3 k. */
function read(text) {
    const [, digits, unit] = /^([\d.\s\u202f]+?)\s*([kMG]?)$/.exec(text.trim()) ?? [];
    return digits === undefined ? 0 : Number(digits.replace(/[\s\u202f]/g, "")) * ({ k: 1e3, M: 1e6, G: 1e9 }[unit] ?? 1);
}

const token = (await readFile(tokenFile, "utf8")).split("\n")[0].trim();
const browser = await startBrowser();
let isEnding = false;
for (const signal of ["SIGTERM", "SIGINT"]) {
    process.on(signal, () => {
        isEnding = true;
        browser.close().finally(() => process.exit(0));
    });
}
const page = await newPage(browser);
await page.goto(`${address}?token=${encodeURIComponent(token)}#/drive`);
await page.locator(".lane-waf b").waitFor();
await put("open", `Chromium ${browser.version()}`);

/** Reads the page's current values. */
async function look() {
    const [waf] = await page.locator(".lane-waf b").allTextContents();
    await put("waf", waf);
    const rows = await page.locator(".hosts tbody tr").filter({ hasText: "vfio-user" }).all();
    for (const row of rows) {
        const [, iops, , depth] = (await row.locator("td").allTextContents()).map(read);
        if (iops > 0 && depth > 0 && !existsSync(join(folder, "hosts"))) await put("hosts", `${iops} ${depth.toFixed(1)}`);
    }
    if (page.mistakes.length > 0) throw new Error(`the page fails: ${page.mistakes.join("; ")}`);
}

while (!isEnding) {
    try {
        await look();
    } catch (error) {
        // A browser that is closing does not answer.
        if (!isEnding) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
}
