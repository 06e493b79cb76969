// Pages in Chromium: no error, no request, the numbers of the JSON, labels for screen readers, both colour schemes, a
// phone and a desktop. HEADROOM names the program, CHROMIUM the browser, SCREENSHOTS a folder for pictures to look at.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";

import {chromium} from "playwright-core";

const program = process.env.HEADROOM ?? new URL("../../../build/release/bin/headroom", import.meta.url).pathname;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "headroom-pages-"));
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
           "--disable-sync"]});
});
after(async () => {
  await browser?.close();
  rmSync(folder, {recursive: true});
});

const DEEP = ["-t", "8", "-p", "8", "--sp", "--global-batch", "64"];
const QUESTIONS = {
  estimate: ["estimate", "gpt3-175b", ...DEEP, "-m", "3", "--recompute", "selective"],
  does_not_fit: ["estimate", "deepseek-v3", "--system", "dgx-h100-80g", "-p", "16", "--expert-parallel", "64", "--devices", "2048",
                 "--global-batch", "15360"],
  sharded: ["estimate", "llama-3-8b", "--system", "dgx-h100-80g", "--software", "torchtitan-2025", "-d", "8", "--zero", "3"],
  plan: ["plan", "llama-3-70b", "--system", "dgx-h100-80g", "--devices", "64", "--global-batch", "128", "--fast"],
  trials: ["plan", "llama-3-70b", "--system", "dgx-h100-80g", "--devices", "64", "--global-batch", "128", "--fast", "--trial", "3"],
  no_plan: ["plan", "gpt-1t", "--devices", "64", "--global-batch", "64", "-t", "8"],
  systems: ["plan", "llama-3-8b", "--system", "dgx-h100-80g,dgx-a100-80g", "--devices", "16", "--global-batch", "64", "--fast",
        "--tokens", "1T", "--price-per-gpu-hour", "2"],
  found: ["plan", "gpt3-175b", "--devices", "64", "--find", "max-batch", "--fast",
          "--why", "-t 8 -p 8 --recompute full"],
  compare: ["compare", "gpt3-175b", ...DEEP, "--to", "--recompute full"],
  frontier: ["frontier", "gpt3-175b", ...DEEP],
  sweep_plan: ["sweep", "plan", "llama-3-8b", "--system", "dgx-h100-80g", "--global-batch", "64", "--fast", "--vary", "devices=8,16"],
  sweep: ["sweep", "gpt3-175b", ...DEEP, "--vary", "sequence=1024:16384:x2", "--vary", "recompute=none,full"],
};

function write_page(name) {
  const file = join(folder, `${name}.html`);
  const {status, stderr} = spawnSync(program, [...QUESTIONS[name], "--html", file], {encoding: "utf8"});
  assert.ok(status === 0 || status === 3, stderr);
  return file;
}

// A reply in JSON, of a strategy that fits or not.
function reply_of(flags) {
  const {status, stdout, stderr} = spawnSync(program, [...flags, "--format", "json"], {encoding: "utf8", maxBuffer: 1 << 26});
  assert.ok(status === 0 || status === 3, stderr);
  return JSON.parse(stdout);
}

async function open(file, options = {}) {
  const page = await browser.newPage({viewport: {width: 1200, height: 900}, ...options});
  const faults = [];
  page.on("console", (message) => { if (message.type() !== "log") faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => { if (request.url() !== `file://${file}`) faults.push(`asks for ${request.url()}`); });
  await page.goto(`file://${file}`);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return {page, faults};
}

for (const name of Object.keys(QUESTIONS)) {
  test(`${name}: small, silent, labelled, and as wide as its screen`, async () => {
    const file = write_page(name);
    assert.ok(statSync(file).size < 400_000);
    for (const [width, colorScheme] of [[1200, "light"], [390, "dark"]]) {
      const {page, faults} = await open(file, {viewport: {width, height: 900}, colorScheme});
      assert.deepEqual(faults, []);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      for (const heading of await page.$$("summary")) await heading.click();
      await page.evaluate(axe);
      const {violations} = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`), []);
      if (process.env.SCREENSHOTS) {
        await page.screenshot({path: join(process.env.SCREENSHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true});
      }
      assert.deepEqual(faults, []);
      await page.close();
    }
  });
}

test("bars add up to the totals of the JSON", async () => {
  const {page} = await open(write_page("does_not_fit"));
  const unequal = await page.evaluate(() => {
    const {memory, time} = JSON.parse(document.getElementById("reply").textContent);
    const sum = (parts) => parts.reduce((total, part) => total + part.value, 0);
    const ranks = memory.ranks.filter((rank) => Math.abs(sum(memory_parts(rank)) - rank.total_bytes) > 32);
    const iteration = Math.abs(sum(time_parts(time.breakdown)) - time.iteration_seconds) > 1e-6 * time.iteration_seconds;
    return {ranks, iteration};
  });
  assert.deepEqual(unequal, {ranks: [], iteration: false});
});

test("what is shown is what the JSON says", async () => {
  const flags = QUESTIONS.estimate;
  const reply = reply_of(flags);
  const {page} = await open(write_page("estimate"));
  const text = await page.textContent("main");
  assert.ok(text.includes(`${reply.time.iteration_seconds.toFixed(3)} s`));
  assert.ok(text.includes(`${(100 * reply.throughput.mfu).toFixed(1)}%`));
  assert.ok(text.includes(`${(reply.memory.peak_bytes / 2 ** 30).toFixed(2)} GiB`));
  for (const rank of reply.memory.ranks) assert.ok(text.includes(`${(rank.total_bytes / 2 ** 30).toFixed(2)} GiB`));
});

test("the memory under the schedule reaches the peak, and falls back to where it began", async () => {
  const {page} = await open(write_page("estimate"));
  const {most, first, last, peak} = await page.evaluate(() => {
    const {views: {schedule}, memory} = JSON.parse(document.getElementById("reply").textContent);
    const rank = schedule.ranks.find((one) => one.pipeline_rank === memory.peak_rank);
    const [, held] = memory_steps(rank, schedule.levels_bytes, schedule.shown_seconds);
    return {most: Math.max(...held), first: held[0], last: held.at(-1), peak: memory.peak_bytes};
  });
  assert.equal(most, peak);
  assert.equal(first, last);
});

test("a plan's page says what was found, what it costs, on which system, and why not another strategy", async () => {
  const flags = QUESTIONS.systems;
  const {plans} = reply_of(flags);
  const costs = await (await open(write_page("systems"))).page.textContent("main");
  assert.ok(costs.includes(`costs ${Math.round(plans[0].budget.price).toLocaleString("en-US")}`));
  for (const plan of plans) assert.ok(costs.includes(plan.system));
  const {found, why} = reply_of(QUESTIONS.found);
  const text = await (await open(write_page("found"))).page.textContent("main");
  assert.ok(text.includes(`max batch: ${found.value.toLocaleString("en-US")}`));
  assert.ok(text.includes(`Why not ${why.flags}`));
});

test("a plan's page says which plans are equal within noise, the odds of each, and what to measure first", async () => {
  const {choice} = reply_of(QUESTIONS.trials);
  const {page} = await open(write_page("trials"));
  const section = page.locator("section", {hasText: "How sure the choice is"}).last();
  assert.equal(await section.locator("tbody tr").count(), choice.trials.length);
  const odds = `The odds that plan 1 is the fastest are ${(100 * choice.plans[0].odds_of_fastest).toFixed(0)}%`;
  const text = await section.textContent();
  assert.ok(text.includes(odds), text);
  const equal = choice.plans.flatMap((plan, i) => i > 0 && plan.equal_within_noise ? [i + 1] : []);
  assert.ok(equal.length > 1 && text.includes(`within the noise of predictions: plans ${equal.join(", ")}.`), text);
});

test("a page links the what-if page, and shows the plan on the frontier of its layout", async () => {
  const file = join(folder, "linked.html");
  execFileSync(program, [...QUESTIONS.estimate, "--html", file, "--what-if", "https://what.if/"]);
  const {page} = await open(file);
  const address = await page.getAttribute("text=Change it in the browser", "href");
  const {command} = reply_of(QUESTIONS.estimate);
  assert.equal(decodeURIComponent(address), `https://what.if/#command=${command}`);
  const {frontier} = reply_of([...QUESTIONS.estimate, "--views"]).views;
  assert.match(await page.getAttribute("[aria-label*='with the plan on it']", "aria-label"), new RegExp(`^frontier of ${frontier.length} sets`));
});

test("a row of a plan is chosen from the keyboard", async () => {
  const {page} = await open(write_page("plan"));
  await page.locator("section tbody tr").nth(1).focus();
  await page.keyboard.press("Enter");
  assert.match(await page.textContent("section"), /Plan 2: /);
});

test("a pass is read where the pointer is, and dragging zooms both charts", async () => {
  const {page} = await open(write_page("estimate"));
  const over = page.locator(".chart .u-over").first();
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + 4, box.y + 8);
  assert.match(await page.textContent(".readout"), /^PP rank 0: forward of microbatch \d, virtual stage 0, [\d.]+ ms to/);
  await page.mouse.move(box.x + box.width * 0.3, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 8, {steps: 4});
  await page.mouse.up();
  const widths = await page.evaluate(() => [...document.querySelectorAll(".chart")].map((place) => {
    const {min, max} = place.plot().scales.x;
    return max - min;
  }));
  const whole = await page.evaluate(() => JSON.parse(document.getElementById("reply").textContent).time.iteration_seconds);
  assert.ok(widths[0] < 0.12 * whole);
  assert.ok(Math.abs(widths[0] - widths[1]) < 1e-9);
  await page.getByRole("button", {name: "Show all"}).focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.evaluate(() => {
    const {min, max} = document.querySelector(".chart").plot().scales.x;
    return max - min;
  }) > 0.99 * whole);
});

test("tables sort by their headings, from the keyboard too", async () => {
  const {page} = await open(write_page("plan"));
  const column = () => page.$$eval("section:first-of-type tbody tr td:first-child", (cells) => cells.map((cell) => Number(cell.textContent)));
  const numbers = await column();
  const heading = page.getByRole("button", {name: "#"});
  await heading.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  assert.deepEqual(await column(), [...numbers].reverse());
});

test("names that look like markup are text", async () => {
  const model = reply_of(["estimate", "gpt3-175b", ...DEEP, "--views"]);
  model.model.name = "</script><img src=x onerror=\"document.title='broken'\"><!--";
  model.assumptions = [{text: "<b id=injected>x</b>", source: "<script>document.title='broken'</script>"}];
  const reply = join(folder, "hostile.json");
  writeFileSync(reply, JSON.stringify(model));
  const file = join(folder, "hostile.html");
  execFileSync(program, ["report", reply, "-o", file]);
  const {page, faults} = await open(file);
  assert.deepEqual(faults, []);
  assert.ok(!(await page.title()).startsWith("broken"));
  assert.equal(await page.$("#injected"), null);
  assert.ok((await page.textContent("h1")).includes("onerror"));
});

test("a reply without its members is drawn as far as it goes", async () => {
  const whole = reply_of(["estimate", "gpt3-175b", ...DEEP]);
  for (const member of ["time", "throughput", "alternatives", "assumptions", "warnings", "system", "software"]) {
    const part = {...whole};
    delete part[member];
    const reply = join(folder, "part.json");
    writeFileSync(reply, JSON.stringify(part));
    const file = join(folder, "part.html");
    execFileSync(program, ["report", reply, "-o", file]);
    const {page, faults} = await open(file);
    assert.deepEqual(faults, [], member);
    await page.close();
  }
});

test("1,000 plans and 512 ranks are one page", async () => {
  const reply = reply_of(QUESTIONS.plan);
  const plan = reply.plans[0];
  const rank = plan.memory.ranks[0];
  plan.memory.ranks = Array.from({length: 512}, (_, i) => ({...rank, pipeline_rank: i}));
  const simple = {...plan, memory: {...plan.memory, ranks: [rank]}};
  reply.plans = [plan, ...Array.from({length: 999}, () => simple)];
  const text = join(folder, "many.json");
  writeFileSync(text, JSON.stringify(reply));
  const file = join(folder, "many.html");
  execFileSync(program, ["report", text, "-o", file]);
  assert.ok(statSync(file).size < 400_000);
  const {page, faults} = await open(file);
  assert.deepEqual(faults, []);
  const {rows, ranks, noted} = await page.evaluate(() => ({
    rows: document.querySelector("section tbody").children.length,
    ranks: document.querySelectorAll(".bars.scrolled .track").length,
    noted: document.querySelector("section p").textContent}));
  assert.equal(ranks, 512);
  assert.ok(rows > 100);
  assert.ok(rows === 1000 || noted.includes(`${rows} of 1000`), noted);
});
