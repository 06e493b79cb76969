// The what-if page, where scripts/what-if has built it: its answers are the program's to the last byte, in Node and in Chromium,
// and the page asks, draws, shares and searches. HEADROOM names the program, WHAT_IF the page's folder, CHROMIUM the browser,
// SCREENSHOTS a folder for pictures to look at.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createServer} from "node:http";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {extname, join, normalize} from "node:path";
import {after, before, test} from "node:test";

import {chromium} from "playwright-core";

import {address_of, changed_state, commanded_model, file_name, is_model, START, state_of, state_of_command} from "../whatif/command.js";
import {instance_of, run_command} from "../whatif/engine.js";

const root = new URL("../../..", import.meta.url).pathname;
const program = process.env.HEADROOM ?? join(root, "build/release/bin/headroom");
const built = process.env.WHAT_IF ?? join(root, "build/what-if");
const skip = existsSync(join(built, "headroom.wasm")) ? false : "scripts/what-if has not built the page";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const scratch = mkdtempSync(join(tmpdir(), "headroom-what-if-"));
const folder = join(scratch, "pasted");
const example = (name) => readFileSync(join(root, "examples", name), "utf8");

const CONFIG = JSON.stringify({
  architectures: ["LlamaForCausalLM"], model_type: "llama", hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32,
  num_key_value_heads: 8, num_hidden_layers: 32, vocab_size: 128256, max_position_embeddings: 8192, rms_norm_eps: 1e-5, hidden_act: "silu",
  tie_word_embeddings: false});
const FILES = {"config.json": CONFIG, "train_dense.sh": example("train_dense.sh"), "train_experts.sh": example("train_experts.sh"),
               "torchtitan.toml": example("torchtitan-llama3-70b.toml"), "broken.json": "{\"hidden_size\": "};

const H100 = ["--system", "dgx-h100-80g"];
const COMMANDS = [
  [], ["explain", "--help"], ["estimate", "--help"], ["plan", "--help"], ["list", "models"], ["list", "systems", "--format", "csv"],
  ["list", "software", "--format", "json"], ["schema", "estimate"],
  ...["llama-3-70b", "gpt3-175b", "mixtral-8x22b", "deepseek-v3", "nemotron-h-56b", "qwen3-next-80b-a3b", "gpt-oss-120b", "kimi-linear-48b-a3b",
      "llama-4-scout", "gemma-3-27b", "mt-nlg-530b"].flatMap((model) => [
    ["estimate", model, ...H100, "-t", "8", "--devices", "64", "--sp", "--global-batch", "128", "--format", "json"],
    ["explain", model, "-t", "8", "--sp", "--recompute", "selective", "--format", "json"]]),
  ["estimate", "llama-3-70b", ...H100, "--devices", "64", "-t", "8", "-p", "4", "--sp", "--global-batch", "128", "--data-sharding", "zero1", "--views",
   "--format", "json"],
  ["estimate", "llama-3-70b", "--system", "dgx-b200-180g", "--devices", "64", "-t", "8", "-p", "4", "-m", "5", "--sp", "--global-batch", "128",
   "--precision", "mxfp8", "--timeline"],
  ["estimate", "deepseek-v3", ...H100, "-p", "16", "--expert-parallel", "64", "--devices", "2048", "--global-batch", "15360", "--views", "--format", "json"],
  ["estimate", "gpt3-175b", "--system", "dgx-a100-80g", "-t", "8", "-p", "8", "-m", "3", "--global-batch", "64", "--sp", "--recompute", "selective"],
  ["estimate", "llama-3-8b", ...H100, "--software", "torchtitan-2025", "-d", "8", "--zero", "3"],
  ["estimate", "llama-3-8b", ...H100, "-d", "8", "--tokens", "1T", "--price-per-gpu-hour", "2.5", "--mtbf", "30d"],
  ["estimate", "config.json", ...H100, "--devices", "8"], ["estimate", "train_dense.sh", ...H100], ["check", "train_dense.sh", ...H100],
  ["estimate", "train_experts.sh", ...H100], ["estimate", "torchtitan.toml", ...H100], ["import", "config.json"],
  ["plan", "llama-3-8b", ...H100, "--devices", "16", "--global-batch", "64", "--fast", "--format", "json"],
  ["plan", "mixtral-8x7b", ...H100, "--devices", "32", "--global-batch", "64", "--fast"],
  ["plan", "gpt3-175b", "--devices", "64", "--find", "max-batch", "--fast", "-t", "8", "-p", "8"],
  ["compare", "llama-3-8b", ...H100, "-t", "2", "--devices", "8", "--", "-t", "4"],
  ["frontier", "llama-3-8b", ...H100, "-t", "2", "--devices", "8", "--format", "csv"],
  ["sweep", "gpt3-175b", "-t", "8", "-p", "8", "--sp", "--global-batch", "64", "--vary", "sequence=1024:8192:x2", "--vary", "recompute=none,full"],
  ["memory", "llama-3-8b", ...H100, "-t", "2"], ["validate", "--format", "csv"],
  ["estimate", "no-such-model"], ["estimate", "broken.json"], ["estimate", "llama-3-8b", "-t", "3"], ["estimate", "llama-3-8b", "--what"],
  ["estimate", "llama-3-70b", ...H100, "--devices", "60", "-t", "8", "-p", "4"],
];

let browser;
let server;
let address;
let run;  // of a command, in Node

const TYPES = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".wasm": "application/wasm"};

before(async () => {
  if (skip) return;
  mkdirSync(folder);
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const module = await WebAssembly.compile(readFileSync(join(built, "headroom.wasm")));
  const {default: factory} = await import(join(built, "headroom.mjs"));
  run = async (args, options) => run_command(await instance_of(factory, module), args, options);
  server = createServer((request, response) => {
    const name = normalize(new URL(request.url, "http://x").pathname);
    const file = join(built, name.endsWith("/") ? "index.html" : name);
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, {"content-type": TYPES[extname(file)] ?? "text/plain"}).end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  address = `http://127.0.0.1:${server.address().port}/`;
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"]});
});
after(async () => {
  await browser?.close();
  server?.close();
  rmSync(scratch, {recursive: true});
});

function native(args) {
  const {status, stdout, stderr} = spawnSync(program, args, {cwd: folder, encoding: "utf8", maxBuffer: 1 << 28});
  return {status, stdout, stderr};
}

for (const args of COMMANDS) {
  test(`headroom ${args.join(" ")}`, {skip}, async () => {
    assert.deepEqual(await run(args, {files: FILES}), native(args));
  });
}

test("YAML is refused with a reason", {skip}, async () => {
  const {status, stderr} = await run(["estimate", "run.yaml"], {files: {"run.yaml": "base_model: x\n"}});
  assert.equal(status, 2);
  assert.match(stderr, /run\.yaml: is YAML, which this build cannot read/);
});

test("a search tells how far it is", {skip}, async () => {
  let told = "";
  await run(["plan", "llama-3-70b", ...H100, "--devices", "64", "--global-batch", "128", "--fast"], {tell: (text) => { told += text; }});
  assert.match(told, /best so far [\d.]+ s/);
});

async function open(hash = "", options = {}) {
  const page = await browser.newPage({viewport: {width: 1200, height: 900}, ...options});
  const faults = [];
  page.on("console", (message) => { if (message.type() !== "log") faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith(address) && !request.url().startsWith("data:")) faults.push(`asks for ${request.url()}`); });
  await page.goto(address + hash);
  await page.waitForSelector("body[data-ready]");
  return {page, faults};
}

// Until the page has answered what it was asked last.
async function answered(page) {
  await page.waitForFunction(() => document.querySelector("#curves").dataset.of === location.hash ||
                                   (location.hash === "" && document.querySelector("#curves").dataset.of));
}

test("in Chromium, too, answers are the program's", {skip}, async () => {
  const {page} = await open();
  for (const args of COMMANDS.filter(([name]) => ["estimate", "explain", "plan"].includes(name))) {
    const reply = await page.evaluate(async ({args, files}) => {
      const [{compiled, instance_of: started, run_command: run_in}, {default: program}] = await Promise.all([import("./engine.js"), import("./headroom.mjs")]);
      globalThis.tested ??= await compiled("headroom.wasm");
      return run_in(await started(program, globalThis.tested), args, {files});
    }, {args, files: FILES});
    assert.deepEqual(reply, native(args), args.join(" "));
  }
});

for (const [width, colorScheme] of [[1200, "light"], [1200, "dark"], [390, "light"], [390, "dark"]]) {
  test(`${width} wide in ${colorScheme}: silent, labelled, as wide as its screen`, {skip}, async () => {
    const {page, faults} = await open("", {viewport: {width, height: 900}, colorScheme});
    await answered(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    if (process.env.SCREENSHOTS) await page.screenshot({path: join(process.env.SCREENSHOTS, `what-if-${width}-${colorScheme}-landing.png`)});
    for (const heading of await page.$$("summary")) await heading.click();
    await page.evaluate(axe);
    const {violations} = await page.evaluate(() => axe.run());
    assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`), []);
    if (process.env.SCREENSHOTS) await page.screenshot({path: join(process.env.SCREENSHOTS, `what-if-${width}-${colorScheme}.png`), fullPage: true});
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test("the landing view says whether it fits, with the program's numbers", {skip}, async () => {
  const {page} = await open();
  const {memory, time} = JSON.parse(native(["estimate", START.model, "--devices", START.devices, "--tensor-parallel", START.tensor_parallel,
    "--pipeline-parallel", START.pipeline_parallel, "--global-batch", START.global_batch, "--sp", "--data-sharding", START.data_sharding, "--system",
    START.system, "--format", "json"]).stdout);
  const verdict = await page.textContent("#verdict");
  assert.equal(memory.verdict, "fits");
  assert.ok(verdict.startsWith("Fits: PP rank 0"), verdict);
  assert.ok((await page.textContent("#cards")).includes(`${time.iteration_seconds.toFixed(3)} s`));
  assert.ok(await page.locator("#verdict").evaluate((node) => node.getBoundingClientRect().bottom < 700));
  await page.close();
});

test("a slider moves from the keyboard, the answer follows, and the address keeps it", {skip}, async () => {
  const {page, faults} = await open();
  const before = await page.textContent("#verdict");
  const slider = page.getByRole("slider", {name: /Pipeline parallel/});
  await slider.focus();
  const times = [];
  for (const key of ["ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowRight"]) {
    await page.evaluate(() => { delete document.querySelector("#took").dataset.milliseconds; });
    await page.keyboard.press(key);
    await page.waitForFunction(() => document.querySelector("#took").dataset.milliseconds);
    times.push(Number(await page.evaluate(() => document.querySelector("#took").dataset.milliseconds)));
  }
  // Of a machine that has other things to do, too, only what the program itself takes says how long is long.
  const began = performance.now();
  native(["estimate", START.model, "--devices", "64", "-t", "8", "-p", "4", ...H100, "--format", "json", "--no-suggestions"]);
  const own = performance.now() - began;
  console.log(`answered in ${times.map((time) => time.toFixed(0)).join(", ")} ms; the program takes ${own.toFixed(0)} ms`);
  assert.ok(Math.min(...times) < 8 * own);
  assert.match(page.url(), /pipeline_parallel=2/);
  const now = await page.textContent("#verdict");
  assert.notEqual(now, before);
  const other = await open(new URL(page.url()).hash);
  assert.equal(await other.page.textContent("#verdict"), now);
  assert.equal(new URL(other.page.url()).hash, new URL(page.url()).hash);
  assert.deepEqual([...faults, ...other.faults], []);
});

test("what is refused is said in words, and goes away", {skip}, async () => {
  const {page} = await open();
  await page.getByLabel("GPUs").fill("60");
  await page.waitForSelector("#verdict.refused");
  assert.match(await page.textContent("#verdict"), /must be a multiple of --tensor-parallel times --pipeline-parallel/);
  await page.getByLabel("GPUs").fill("128");
  await page.waitForSelector("#verdict.fits");
});

test("a pasted config.json, a launch script and a hostile text", {skip}, async () => {
  const {page, faults} = await open();
  await page.getByText("Paste a config.json, a launch script or a command").click();
  const area = page.getByLabel("Text of the file");
  await area.fill(CONFIG);
  await page.waitForFunction(() => document.querySelector("#field-model").selectedOptions[0].textContent === "the pasted model");
  await area.fill(example("train_dense.sh"));
  const {strategy} = JSON.parse(native(["estimate", "train_dense.sh", ...H100, "--format", "json"]).stdout);
  await page.waitForFunction((devices) => document.querySelector("#field-gpus").value === devices, String(strategy.devices));
  assert.equal(await page.textContent("#controls output"), String(strategy.tensor_parallel));
  await area.fill("<img src=x onerror=\"document.title='broken'\">");
  await page.waitForSelector("#verdict.refused");
  assert.notEqual(await page.title(), "broken");
  await page.getByRole("button", {name: "Back to a named model"}).click();
  await page.waitForSelector("#verdict.fits");
  assert.deepEqual(faults, []);
});

test("a search is cancelled, runs again, and its plan is taken over", {skip}, async () => {
  const {page, faults} = await open();
  await page.getByRole("button", {name: "Search everything"}).click();
  await page.waitForFunction(() => /best so far/.test(document.querySelector("#search").textContent));
  await page.getByRole("button", {name: "Cancel"}).click();
  assert.equal(await page.textContent("#search"), "");
  await page.getByRole("button", {name: "Find the fastest"}).click();
  await page.waitForSelector("#search tbody tr", {timeout: 120_000});
  const {plans} = JSON.parse(native(["plan", START.model, ...H100, "--devices", "64", "--global-batch", "128", "--fast", "--format", "json"]).stdout);
  assert.equal(await page.locator("#search tbody tr").count(), plans.length);
  await page.locator("#search tbody tr").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((text) => document.querySelector("#cards").textContent.includes(text), `${plans[0].time.iteration_seconds.toFixed(3)} s`);
  assert.deepEqual(faults, []);
});

test("states and addresses are each other's", () => {
  for (const state of [START, {model: "gpt3-175b", devices: "64"}, {text: "a & b = #1\n\"é\"", system: "x", more: "--optimizer muon"}])
    assert.deepEqual(state_of(address_of(state)), state);
  assert.deepEqual(state_of(""), START);
  const command = "headroom estimate llama-3-8b --global-batch 16 -t 8 -p 2 -d 1 --sp --recompute full";
  assert.deepEqual(state_of(`#command=${encodeURIComponent(command)}`), state_of_command(command, {model: "llama-3-8b"}));
  assert.equal(commanded_model(" headroom estimate gpt3-175b -t 8"), "gpt3-175b");
  assert.equal(commanded_model("torchrun headroom estimate x"), undefined);
  assert.deepEqual(state_of_command("headroom estimate x \\\n --devices 32 --tensor-parallel 8", {model: "x"}),
                   {model: "x", text: undefined, devices: "32", tensor_parallel: "8"});
  assert.deepEqual(state_of_command("headroom estimate llama-3-70b --system dgx-h100-80g --global-batch 128 -t 8 -p 2 -m 3 -d 4 -b 1 " +
                                    "--stage-layers '13,13,14*3,12' --sp --data-sharding zero1", {model: "llama-3-70b"}),
                   {model: "llama-3-70b", text: undefined, system: "dgx-h100-80g", global_batch: "128", tensor_parallel: "8", pipeline_parallel: "2",
                    virtual_pipeline: "3", micro_batch: "1", sequence_parallel: "yes", data_sharding: "zero1", devices: "64",
                    more: "--stage-layers '13,13,14*3,12'"});
});

test("a change keeps the rest, but for stages of another pipeline", () => {
  const state = {model: "x", more: "--stage-layers '13,14*3' --optimizer muon"};
  assert.deepEqual(changed_state(state, {devices: "8"}), {...state, devices: "8"});
  assert.deepEqual(changed_state(state, {pipeline_parallel: "2"}), {model: "x", more: "--optimizer muon", pipeline_parallel: "2"});
  assert.deepEqual(changed_state(state, {text: "{}", model: undefined, more: ""}), {text: "{}"});
});

test("pasted texts are told apart", () => {
  assert.equal(file_name(CONFIG), "config.json");
  assert.ok(is_model(CONFIG));
  assert.ok(!is_model("{\"zero_optimization\": {\"stage\": 3}}"));
  assert.equal(file_name(example("train_dense.sh")), "launch.sh");
  assert.equal(file_name(example("torchtitan-llama3-70b.toml")), "config.toml");
  assert.equal(file_name("base_model: x\nmicro_batch_size: 2\n"), "config.yaml");
  assert.equal(file_name("import x\ndef f():\n  pass\n"), "config.py");
});
