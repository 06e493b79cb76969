// Runs the commands that the page sends, one after another, so that the page itself never waits.
import {instance_of, run_command} from "./engine.js";
import program from "./headroom.mjs";

let module = null;
let spare = null;  // the instance of the next command, made while nobody waits for it
let last = Promise.resolve();

async function run({id, args, files, watched}) {
  const tell = watched ? (text) => postMessage({id, told: text}) : undefined;
  try {
    postMessage({id, reply: run_command(await spare, args, {files, tell})});
  } catch (error) {
    postMessage({id, reply: {status: 1, stdout: "", stderr: `headroom: internal error: ${error.message ?? error}\n`}});
  }
  spare = instance_of(program, module);
}

onmessage = ({data}) => {
  if (data.module) {
    module = data.module;
    spare = instance_of(program, module);
  } else {
    last = last.then(() => run(data));
  }
};
