// The npm package of the program in WebAssembly, where scripts/what-if --package has built it: installed into an empty folder,
// its answers are the program's.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";

const root = new URL("../../..", import.meta.url).pathname;
const program = process.env.HEADROOM ?? join(root, "build/release/bin/headroom");
const built = join(root, "build/npm");
const archive = existsSync(built) ? readdirSync(built).find((name) => name.endsWith(".tgz")) : undefined;
const skip = archive ? false : "scripts/what-if --package has not built the package";
const folder = mkdtempSync(join(tmpdir(), "headroom-npm-"));
let headroom;

before(async () => {
  if (skip) return;
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  execFileSync("npm", ["install", "--offline", "--silent", "--no-audit", "--no-fund", join(built, archive)], {cwd: folder});
  const {load} = await import(join(folder, "node_modules/headroom-wasm/index.js"));
  headroom = await load();
});
after(() => rmSync(folder, {recursive: true}));

test("answers as the program", {skip}, () => {
  const strategy = ["-t", "8", "-p", "4", "--sp", "--devices", "64"];
  for (const model of ["llama-3-70b", "gpt3-175b", "mixtral-8x7b"]) {
    const asked = headroom.ask({command: "estimate", arguments: {model, t: 8, p: 4, sp: true, devices: 64}});
    const printed = spawnSync(program, ["estimate", model, ...strategy, "--format", "json"], {encoding: "utf8"});
    assert.deepEqual(asked.reply, JSON.parse(printed.stdout));
    assert.equal(asked.status, printed.status);
  }
});

test("answers one question after another, searches too", {skip}, () => {
  const plan = {command: "plan", arguments: {model: "llama-3-8b", system: "dgx-h100-80g", devices: 16, global_batch: 64, fast: true}};
  const first = headroom.ask(plan);
  assert.ok(first.reply.plans.length > 0);
  assert.deepEqual(headroom.ask(plan), first);
});

test("takes files, and names what is wrong", {skip}, () => {
  const text = readFileSync(join(root, "examples/train_dense.sh"), "utf8");
  const checked = headroom.ask({command: "check", arguments: {files: "run.sh", system: "dgx-h100-80g"}, files: {"run.sh": text}});
  assert.ok([0, 3].includes(checked.status), JSON.stringify(checked).slice(0, 300));
  const wrong = headroom.ask({command: "estimate", arguments: {model: "llama-3-8b", tensor_parallel: 3}});
  assert.equal(wrong.status, 2);
  assert.equal(wrong.errors[0].field, "tensor_parallel");
  assert.match(headroom.version, /^\d+\.\d+\.\d+$/);
});
