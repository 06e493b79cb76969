// How numbers are printed, and what the members of a reply are called and coloured.

const GIB = 2 ** 30;

function gib(bytes, digits = 2) { return `${(bytes / GIB).toFixed(digits)} GiB`; }

function bytes_text(bytes) {
  for (const [unit, size] of [["GiB", GIB], ["MiB", 2 ** 20], ["KiB", 1024]])
    if (Math.abs(bytes) >= size) return `${(bytes / size).toFixed(2)} ${unit}`;
  return `${Math.round(bytes)} B`;
}

function seconds_text(seconds) {
  const size = Math.abs(seconds);
  if (size >= 1 || size === 0) return `${seconds.toFixed(3)} s`;
  if (size >= 1e-3) return `${(seconds * 1e3).toFixed(2)} ms`;
  return `${(seconds * 1e6).toFixed(1)} us`;
}

function percent(share, digits = 1) { return `${(100 * share).toFixed(digits)}%`; }

function signed(value, format) { return (value > 0 ? "+" : "") + format(value); }

function count(value) { return Math.round(value).toLocaleString("en-US"); }

function spelled(key) { return key.replace(/_(bytes|seconds)$/, "").replaceAll("_", " "); }

const VERDICTS = {fits: "fits", marginal: "marginal", does_not_fit: "does not fit"};

function verdict_cell(verdict) { return verdict ? el("span", {class: verdict}, VERDICTS[verdict] ?? verdict) : ""; }

// Parts of a rank's memory that add up to its total, bottom to top, each with its colour.
const MEMORY_PARTS = [
  ["weights", 2], ["gradients", 0], ["optimizer", 1],
  ["layers", 3, "activations of layers"], ["embedding", 4, "activations of the embedding"],
  ["head", 5, "activations of the output layer"], ["outputs", 7, "sent outputs"],
  ["recompute", 6, "recomputed activations"], ["activation_gradients", 8, "gradients of activations"],
  ["logits", 9, "gradients of logits"], ["gathered", 10, "gathered sequence shards"],
  ["weight_gradients", 7, "weight gradients of an op"], ["dequantized_weights", 9, "dequantized weights"],
  ["fetched", 7, "fetched from the host"], ["forward_values", 6, "values of a forward pass"],
  ["gathered_weights", 10, "gathered weights"], ["unit_gradients", 9, "gradients of a unit"],
  ["dummy_gradients", 9, "dummy gradients"], ["workspaces", 12, "GEMM workspaces"],
  ["non_torch", 11, "non-torch memory"],
].map(([key, colour, name]) => ({key: `${key}_bytes`, colour, name: name ?? key}));

function memory_parts(rank) {
  const from = {...rank, ...rank.activations};
  return MEMORY_PARTS.filter(({key}) => from[key]).map((part) => ({...part, value: from[part.key]}));
}

const TIME_COLOURS = {
  gemm: 0, attention: 1, memory_bound: 2, tensor_communication: 3, expert_communication: 5,
  context_communication: 4, scale_communication: 10, recompute: 6, launch_overhead: 12,
  pipeline_communication: 8, bubble: 11, data_communication: 9, host_communication: 7, optimizer: 10,
};
const TIME_NAMES = {
  gemm: "GEMMs", attention: "attention", memory_bound: "memory-bound ops",
  tensor_communication: "TP communication", expert_communication: "EP communication",
  context_communication: "CP communication", pipeline_communication: "PP communication",
  data_communication: "DP communication", host_communication: "host transfers", bubble: "pipeline bubble",
  launch_overhead: "launches", scale_communication: "exchange of scales",
};

function time_parts(breakdown) {
  return Object.entries(breakdown).filter(([, value]) => value > 0).map(([key, value]) => {
    const short = key.replace(/_seconds$/, "");
    return {key, value, colour: TIME_COLOURS[short] ?? 12, name: TIME_NAMES[short] ?? spelled(key)};
  });
}

const SHORT_SIZES = {
  tensor_parallel: "TP", pipeline_parallel: "PP", virtual_pipeline: "VP", context_parallel: "CP",
  expert_parallel: "EP", expert_tensor_parallel: "ETP", data_parallel: "DP", micro_batch: "MBS",
};

function sizes_text(strategy) {
  return Object.entries(SHORT_SIZES).filter(([key]) => strategy[key] > 1 || key === "micro_batch")
      .map(([key, short]) => `${short} ${strategy[key]}`).join(" · ");
}

function recompute_text(recompute) {
  if (!recompute) return "";
  const {policy, ops, layers, method} = recompute;
  let text = policy === "ops" ? (ops ?? []).join(", ") : policy;
  if (layers) text += ` of ${layers} layers (${method})`;
  return text;
}
