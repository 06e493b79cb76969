// The page's state as text: in its address, and as arguments of the program. Nothing here touches the page.

// Fields that a control changes, each with its flag. A field that is not in a state is left to the program: to the launch
// script, the training stack, or its default.
export const FIELDS = {
  devices: "--devices", tensor_parallel: "--tensor-parallel", pipeline_parallel: "--pipeline-parallel",
  virtual_pipeline: "--virtual-pipeline", context_parallel: "--context-parallel", expert_parallel: "--expert-parallel",
  micro_batch: "--micro-batch", global_batch: "--global-batch", sequence: "--sequence", recompute: "--recompute",
  sequence_parallel: "--sequence-parallel", data_sharding: "--data-sharding", precision: "--precision",
  software: "--software", system: "--system",
};

// What a search decides, where it is not pinned.
const SEARCHED = ["tensor_parallel", "pipeline_parallel", "virtual_pipeline", "context_parallel", "expert_parallel",
                  "micro_batch", "recompute", "sequence_parallel", "data_sharding"];

// What a launch script says itself; for anything else the page begins with its own.
export const START = {
  model: "llama-3-70b", system: "dgx-h100-80g", devices: "64", tensor_parallel: "8", pipeline_parallel: "4",
  sequence_parallel: "yes", data_sharding: "zero1", global_batch: "128",
};

const OTHERS = ["model", "text", "more"];

export function state_of(address) {
  const parameters = new URLSearchParams(address.replace(/^#/, ""));
  const command = parameters.get("command");  // of a page of --html
  if (command) return state_of_command(command, {model: commanded_model(command)});
  const state = {};
  for (const key of [...OTHERS, ...Object.keys(FIELDS)]) {
    const value = parameters.get(key);
    if (value) state[key] = value;
  }
  return Object.keys(state).length ? state : {...START};
}

export function address_of(state) {
  const parameters = new URLSearchParams();
  for (const key of [...OTHERS, ...Object.keys(FIELDS)]) if (state[key]) parameters.set(key, state[key]);
  return `#${parameters}`;
}

// Stages that a plan named layer by layer are those of its own pipeline.
export function changed_state(state, fields) {
  const next = {...state, ...fields};
  if (fields.pipeline_parallel || fields.virtual_pipeline) next.more = next.more?.replace(/--stage-layers(=|\s+)\S+\s*/, "").trim();
  return Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined && value !== ""));
}

// What a pasted text is: its name tells the program how to read it.
export function file_name(text) {
  const trimmed = text.trimStart();
  if (trimmed.startsWith("{")) return "config.json";
  if (/^\s*\[[\w.]+\]\s*$/m.test(text) && !/\b(torchrun|python3?|srun|deepspeed)\b/.test(text)) return "config.toml";
  if (/^\s*(import|from)\s+\w|^def \w+\(/m.test(text)) return "config.py";
  if (/^[\w.-]+:(\s|$)/m.test(text) && !/\b(torchrun|python3?|srun|deepspeed)\b/.test(text)) return "config.yaml";
  return "launch.sh";
}

// Whether a text is a model alone: a config.json of the hub, or a model file of Headroom.
export function is_model(text) { return file_name(text) === "config.json" && /"(architectures|model_type|hidden_size|hidden)"/.test(text); }

// Words of a text as a shell reads them, without what it would expand.
export function words_of(text) {
  return [...text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

export function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`; }

export function as_typed({args}) { return ["headroom", ...args].map(quoted).join(" "); }

function flags_of(state, keys) {
  return keys.filter((key) => state[key]).flatMap((key) => {
    if (key === "sequence_parallel") return state[key] === "yes" ? ["--sequence-parallel"] : ["--sequence-parallel=no"];
    return [FIELDS[key], state[key]];
  });
}

function command(name, state, keys, ...rest) {
  const file = state.text ? file_name(state.text) : null;
  return {
    args: [name, file ?? state.model ?? "", ...flags_of(state, keys), ...words_of(state.more ?? ""), ...rest],
    files: file ? {[file]: state.text} : {},
  };
}

export function estimate_command(state, ...rest) { return command("estimate", state, Object.keys(FIELDS), ...rest); }

export function search_command(state, ...rest) {
  const free = Object.keys(FIELDS).filter((key) => !SEARCHED.includes(key));
  return command("plan", state, free, ...rest);
}

// What the layers of the strategy store.
export function explain_command(state, ...rest) { return command("explain", state, Object.keys(FIELDS), ...rest); }

const SHORT = {t: "tensor_parallel", p: "pipeline_parallel", m: "virtual_pipeline", c: "context_parallel", b: "micro_batch"};
const KEYS = new Map([...Object.entries(FIELDS).map(([key, flag]) => [flag, key]), ...Object.entries(SHORT).map(([letter, key]) => [`-${letter}`, key])]);

// The model that a command of the program names, if a text is one.
export function commanded_model(text) { return /^\s*headroom\s+(?:estimate|plan|explain)\s+([\w.-]+)/.exec(text)?.[1]; }

// The state of a `headroom estimate ...`, of the model and the text that `state` has.
export function state_of_command(typed, state) {
  const next = {model: state.model, text: state.text};
  const more = [];
  let data_parallel = 1;
  const words = words_of(typed.replaceAll("\\\n", " ")).slice(3);
  for (let i = 0; i < words.length; ++i) {
    const key = KEYS.get(words[i]);
    if (words[i] === "--sp") next.sequence_parallel = "yes";
    else if (words[i] === "-d") data_parallel = Number(words[++i]);
    else if (key) next[key] = words[++i];
    else more.push(quoted(words[i]));
  }
  const sizes = [next.tensor_parallel, next.pipeline_parallel, next.context_parallel].map((size) => Number(size ?? 1));
  next.devices ??= String(sizes.reduce((product, size) => product * size, data_parallel));
  if (more.length) next.more = more.join(" ");
  return next;
}
