// Headroom in WebAssembly, for Node and browsers: a question in JSON, a reply in JSON (headroom.h describes both).
import {instance_of} from "./engine.js";
import program from "./headroom.mjs";

const in_node = typeof process === "object" && process.versions?.node !== undefined;

async function bytes_beside() {
  const url = new URL("headroom.wasm", import.meta.url);
  if (!in_node) {
    const reply = await fetch(url);
    if (!reply.ok) throw new Error(`${url}: ${reply.status}`);
    return reply.arrayBuffer();
  }
  const {readFile} = await import("node:fs/promises");
  return readFile(url);
}

export async function load({wasm} = {}) {
  const module = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm ?? await bytes_beside());
  const engine = await instance_of(program, module);
  return {
    version: engine.UTF8ToString(engine._headroom_version()),
    ask(question) {
      const text = JSON.stringify(question);
      const length = engine.lengthBytesUTF8(text);
      const at = engine._malloc(length + 1);
      engine.stringToUTF8(text, at, length + 1);
      const reply = engine._headroom_ask(at, length, 0, 0);
      engine._free(at);
      if (reply === 0) throw new RangeError("headroom: no memory is left");
      try {
        return JSON.parse(engine.UTF8ToString(reply));
      } finally {
        engine._headroom_free(reply);
      }
    },
  };
}
