// Runs commands of the program in WebAssembly. Each has an instance of its own, as each has a process of its own elsewhere:
// nothing of one command reaches the next.

// Resolves to an instance that waits for its command. `program`: what headroom.mjs exports. `module`: the compiled
// headroom.wasm.
export function instance_of(program, module) {
  return program({
    thisProgram: "headroom", noInitialRun: true,
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(module, imports).then((made) => done(made, module));
      return {};
    },
  });
}

// Runs the one command of an instance. Returns {status, stdout, stderr}. `files`: {name: text} beside which the command
// starts. `tell`: called with what a terminal would show on stderr, while the command runs.
export function run_command(instance, args, {files = {}, tell} = {}) {
  const {FS} = instance;
  FS.mkdir("/pasted");  // a config.json has the name of its folder
  FS.chdir("/pasted");
  for (const [name, text] of Object.entries(files)) FS.writeFile(name, text);
  const stdout = captured(FS, 1);
  const stderr = captured(FS, 2, tell);
  const status = instance.callMain(args);
  return {status, stdout: stdout(), stderr: stderr()};
}

// Takes what is written to a stream. The stream is a terminal where somebody watches it.
function captured(FS, number, tell) {
  const stream = FS.getStream(number);
  const decoder = new TextDecoder();
  const parts = [];
  stream.stream_ops = {...stream.stream_ops, write(of, buffer, offset, length) {
    const text = decoder.decode(buffer.slice(offset, offset + length), {stream: true});
    parts.push(text);
    tell?.(text);
    return length;
  }};
  if (!tell) stream.tty = null;
  return () => parts.join("") + decoder.decode();
}

// Compiles the module once; every command is an instance of it.
export async function compiled(url) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status}`);
  return WebAssembly.compile(await reply.arrayBuffer());
}
