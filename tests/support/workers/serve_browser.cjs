// Opens pages in a headless Chromium, and prints what it found as JSON. Run by `tests/mount/serve/test_serve_browsers.py`.
// usage: node serve_browser.cjs MODULES zarrita PAGE STORE TOKEN PATH...   arrays that zarrita reads in the page at PAGE
//        node serve_browser.cjs MODULES look FOLDER LINK URL...            pages that axe checks; screenshots go to FOLDER
// MODULES is the folder `node_modules` of the libraries.
const fs = require("node:fs");
const path = require("node:path");

const [modules, what, ...rest] = process.argv.slice(2);
const puppeteer = require(path.join(modules, "puppeteer-core"));

async function zarrita(browser, [page, store, token, ...paths]) {
    const tab = await browser.newPage();
    await tab.goto(page);
    return await tab.evaluate(async (store, token, paths) => {
        const zarr = await import("zarrita");
        const overrides = { headers: { Authorization: `Bearer ${token}` } };
        const found = {};
        for (const path of paths) {
            const root = zarr.root(new zarr.FetchStore(store, { overrides }));
            // Of v3 alone: nothing else is tried.
            const array = await zarr.open.v3(root.resolve(path), { kind: "array" });
            const { data, shape } = await zarr.get(array);
            found[path] = { dtype: array.dtype, shape, data: Array.from(data, Number) };
        }
        return found;
    }, store, token, paths);
}

async function look(browser, [folder, link, ...urls]) {
    const axe = fs.readFileSync(path.join(modules, "axe-core", "axe.min.js"), "utf8");
    const first = await browser.newPage();
    await first.goto(link);
    const found = [];
    for (const url of urls) {
        for (const [scheme, width] of [["light", 1200], ["dark", 1200], ["light", 360], ["dark", 360]]) {
            const tab = await browser.newPage();
            const seen = { url, scheme, width, strange: [], foreign: [] };
            // A dialog is a script that ran, and an error of the console is something that the policy of the page forbids.
            tab.on("dialog", async dialog => { seen.strange.push(dialog.message()); await dialog.dismiss(); });
            tab.on("console", message => { if (message.type() === "error") seen.strange.push(message.text()); });
            tab.on("request", request => { if (new URL(request.url()).origin !== new URL(url).origin) seen.foreign.push(request.url()); });
            await tab.setViewport({ width, height: 900 });
            await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            seen.status = (await tab.goto(url)).status();
            await tab.evaluate(() => document.querySelectorAll("details").forEach(details => { details.open = true; }));
            // Pictures are loaded when they come into view.
            await tab.evaluate(() => document.querySelectorAll("img").forEach(image => { image.loading = "eager"; }));
            await tab.waitForFunction(() => [...document.images].every(image => image.complete));
            seen.images = await tab.evaluate(() => [...document.images].map(image => image.naturalWidth));
            seen.overflow = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            seen.back = await tab.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
            await tab.keyboard.press("Tab");
            seen.focus = await tab.evaluate(() => document.activeElement.textContent);
            await tab.screenshot({ path: path.join(folder, `${found.length}.png`), fullPage: true });
            await tab.evaluate(axe);
            const result = await tab.evaluate(() => window.axe.run(document, {
                runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            }));
            seen.passes = result.passes.length;
            seen.violations = result.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
            found.push(seen);
            await tab.close();
        }
    }
    return found;
}

(async () => {
    const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args });
    try {
        const found = await { zarrita, look }[what](browser, rest);
        process.stdout.write(JSON.stringify(found));
    } finally {
        await browser.close();
    }
})().catch(error => { console.error(error); process.exit(1); });
