// `headroom serve --stdio` before the protocol's own client, which checks every message against its published schema.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Client} from "@modelcontextprotocol/sdk/client/index.js";
import {StdioClientTransport} from "@modelcontextprotocol/sdk/client/stdio.js";

const program = process.env.HEADROOM ?? new URL("../../../build/release/bin/headroom", import.meta.url).pathname;
const client = new Client({name: "test", version: "1"});

before(() => client.connect(new StdioClientTransport({command: program, args: ["serve", "--stdio"]})));
after(() => client.close());

const call = (name, args, options) => client.callTool({name, arguments: args}, undefined, options);

test("greets with its name, its version and how to use it", () => {
  assert.equal(client.getServerVersion().name, "headroom");
  assert.match(client.getInstructions(), /plan/);
  assert.ok(client.getServerCapabilities().tools && client.getServerCapabilities().resources);
});

test("lists tools with schemas of their arguments", async () => {
  const {tools} = await client.listTools();
  assert.deepEqual(tools.map(({name}) => name), ["plan", "estimate", "check", "explain", "why", "compare", "list"]);
  for (const {inputSchema, description, annotations} of tools) {
    assert.ok(description.length > 40 && annotations.readOnlyHint);
    for (const name of inputSchema.required) assert.ok(inputSchema.properties[name], name);
  }
});

test("plans, in words and in numbers", async () => {
  const question = {model: "llama-3-8b", system: "dgx-h100-80g", devices: 8, global_batch: 64, top: 2};
  const table = await call("plan", question);
  assert.match(table.content[0].text, /strategies/);
  const {structuredContent} = await call("plan", {...question, format: "json"});
  assert.equal(structuredContent.plans.length, 2);
});

test("explains a configuration, and why it is not the best", async () => {
  const why = await call("why", {model: "llama-3-8b", system: "dgx-h100-80g", devices: 8, global_batch: 64, why: "-t 8 --sp"});
  assert.ok(!why.isError && why.content[0].text.length > 100);
  const ops = await call("explain", {model: "llama-3-8b", tensor_parallel: 2});
  assert.match(ops.content[0].text, /norm_1/);
});

test("checks a launch script that the call holds", async () => {
  const text = "torchrun pretrain_gpt.py --num-layers 12 --hidden-size 4096 --num-attention-heads 32 " +
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64\n";
  const reply = await call("check", {text, name: "train.sh", system: "dgx-h100-80g"});
  assert.match(reply.content[0].text, /^Fits/);
});

test("says what is wrong with a call", async () => {
  const reply = await call("estimate", {model: "llama-3-8b", tensor_parallel: 3});
  assert.ok(reply.isError);
  assert.match(reply.content[0].text, /tensor_parallel: must divide/);
  await assert.rejects(call("train", {}), /tools\/list/);
});

test("reads every resource that it lists", async () => {
  const {resources} = await client.listResources();
  assert.ok(resources.length > 50);
  for (const {uri} of resources) {
    const {contents: [{text}]} = await client.readResource({uri});
    assert.ok(text.length > 100, uri);
  }
  await assert.rejects(client.readResource({uri: "headroom://docs/../README"}));
});

test("tells of progress, and ends a call that is cancelled", async () => {
  const cancel = new AbortController();
  let told = 0;
  const long = {model: "deepseek-v3", system: "dgx-h100-80g", devices: "1024,2048,4096,8192", global_batch: 15360};
  await assert.rejects(call("plan", long, {signal: cancel.signal, timeout: 60000, onprogress: () => {
    if (++told === 2) cancel.abort();
  }}));
  assert.equal(told, 2);
  await client.ping();
});

test("answers calls that run beside each other", async () => {
  const replies = await Promise.all(Array.from({length: 50}, (_, i) =>
    call("estimate", {model: "llama-3-8b", devices: 8, sequence: 1024 * (1 + i % 8), no_suggestions: true})));
  assert.equal(replies.filter(({isError}) => !isError).length, 50);
  assert.equal(new Set(replies.map(({content}) => content[0].text)).size, 8);
});
