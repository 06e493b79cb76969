/** A value of an argument: a flag's text or number, true for a flag without a value, a list, or the content of a file. */
export type Value = string | number | boolean | null | Value[] | {[name: string]: Value};

export interface Question {
  /** A command of the program: "plan", "estimate", "sweep plan", "list models", ... */
  command: string;
  /** Flags by their long names with underscores (global_batch), and positional arguments by their names (model). */
  arguments?: {[name: string]: Value};
  /** Texts that arguments name as files, such as a launch script. An object is the content of a JSON file. */
  files?: {[name: string]: string | object};
}

export interface Problem {
  field: string;
  rule: string;
}

export interface Reply {
  /** 0 done and fits, 1 internal error, 2 bad input, 3 does not fit or nothing feasible, 4 out of tolerance. */
  status: 0 | 1 | 2 | 3 | 4 | 130;
  /** What the program prints with --format json. `headroom schema COMMAND` prints its schema. */
  reply?: any;
  /** What the program prints, where that is not JSON. */
  text?: string;
  /** What is wrong with the question. */
  errors?: Problem[];
  /** What the program says beside its result. */
  messages: string[];
}

export interface Headroom {
  readonly version: string;
  /** Answers a question. It runs in the calling thread: a search may take seconds, so ask from a worker in a page. */
  ask(question: Question): Reply;
}

/** Compiles the module, or takes one that is compiled or read already. */
export function load(options?: {wasm?: WebAssembly.Module | BufferSource}): Promise<Headroom>;
