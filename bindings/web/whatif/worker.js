// Runs the commands that the page sends, one after another, so that the page itself never waits.
import {run_command} from "./engine.js";
import program from "./headroom.mjs";

let module = null;
let last = Promise.resolve();

async function run({id, args, files, watched}) {
  const tell = watched ? (text) => postMessage({id, told: text}) : undefined;
  try {
    postMessage({id, reply: await run_command(program, module, args, {files, tell})});
  } catch (error) {
    postMessage({id, reply: {status: 1, stdout: "", stderr: `headroom: internal error: ${error.message ?? error}\n`}});
  }
}

onmessage = ({data}) => {
  if (data.module) module = data.module;
  else last = last.then(() => run(data));
};
