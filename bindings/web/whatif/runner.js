// A worker that runs commands of the program. What is cancelled ends at once: the worker is put away, and the next command
// starts another.

export class Runner {
  constructor(module) {
    this.module = module;
    this.worker = null;
    this.waiting = new Map();
    this.asked = 0;
  }

  // Resolves to {status, stdout, stderr}, or to null where it was cancelled. `told`: called with progress.
  run({args, files}, told) {
    this.worker ??= this.started();
    const id = ++this.asked;
    this.worker.postMessage({id, args, files, watched: told !== undefined});
    return new Promise((done) => this.waiting.set(id, {done, told}));
  }

  cancel() {
    this.worker?.terminate();
    this.worker = null;
    for (const {done} of this.waiting.values()) done(null);
    this.waiting.clear();
  }

  started() {
    const worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
    worker.postMessage({module: this.module});
    worker.onmessage = ({data: {id, told, reply}}) => {
      const asked = this.waiting.get(id);
      if (told !== undefined) return asked?.told(told);
      this.waiting.delete(id);
      asked?.done(reply);
    };
    return worker;
  }
}
