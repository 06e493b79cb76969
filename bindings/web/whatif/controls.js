// The controls of the page, each of one field of the state. A control shows what the program took where the state leaves a
// field open.
/* global el, folded */

const POWERS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

function divisors(number) {
  return Array.from({length: number}, (_, i) => i + 1).filter((size) => number % size === 0);
}

// What of the state and of the last reply bounds a control.
function facts_of(state, reply) {
  const size = (key) => Number(state[key] ?? reply?.strategy[key] ?? 1) || 1;
  const layers = reply?.model.layers;
  const kinds = Object.values(reply?.model.layer_kinds ?? {});
  const [tensor, pipeline, context] = ["tensor_parallel", "pipeline_parallel", "context_parallel"].map(size);
  // GPUs must be a multiple of the product of these sizes.
  const left_by = (...others) => (value) => size("devices") % others.reduce((product, other) => product * other, value) === 0;
  return {
    devices: size("devices"), pipeline,
    layers: Array.isArray(layers) ? layers.reduce((sum, {count}) => sum + count, 0) : layers,
    experts: reply?.model.experts?.count ?? Math.max(0, ...kinds.map(({experts}) => experts?.count ?? 0)),
    for_tensor: left_by(pipeline, context), for_pipeline: left_by(tensor, context), for_context: left_by(tensor, pipeline),
  };
}

const up_to = (values, most) => values.filter((value) => value <= most);

const SLIDERS = [
  {key: "tensor_parallel", name: "Tensor parallel (TP)", values: ({for_tensor}) => up_to(POWERS, 64).filter(for_tensor)},
  {key: "pipeline_parallel", name: "Pipeline parallel (PP)",
   values: ({layers, for_pipeline}) => up_to(layers ? divisors(layers) : POWERS, 128).filter(for_pipeline)},
  {key: "virtual_pipeline", name: "Virtual pipeline (VP)",
   values: ({layers, pipeline}) => (layers && layers % pipeline === 0 ? up_to(divisors(layers / pipeline), 16) : up_to(POWERS, 8))},
  {key: "context_parallel", name: "Context parallel (CP)", values: ({for_context}) => up_to(POWERS, 64).filter(for_context)},
  {key: "expert_parallel", name: "Expert parallel (EP)", values: ({experts, devices}) => up_to(divisors(experts || 1), Math.min(256, devices)),
   hidden: ({experts}) => !experts},
  {key: "micro_batch", name: "Microbatch (sequences)", values: () => up_to(POWERS, 32)},
  {key: "sequence", name: "Sequence (tokens)", of: "workload", values: () => Array.from({length: 12}, (_, i) => 512 * 2 ** i)},
];

const CHOICES = [
  {key: "recompute", name: "Recomputation", values: ["none", "selective", "full"], taken: ({strategy}) => strategy.recompute.policy},
  {key: "sequence_parallel", name: "Sequence parallel (SP)", values: ["yes", "no"],
   taken: ({strategy}) => (strategy.sequence_parallel ? "yes" : "no")},
  {key: "data_sharding", name: "Data sharding", values: ["none", "zero1", "zero2", "zero3"], taken: ({strategy}) => strategy.data_sharding},
  {key: "precision", name: "Precision", values: ["bf16", "fp8", "fp8_delayed", "fp8_blockwise", "mxfp8", "nvfp4"],
   taken: ({strategy}) => strategy.precision},
];

function option(value, text, chosen) { return el("option", {value, selected: value === chosen}, text); }

function field(name, input, ...rest) {
  input.id = `field-${name.replaceAll(/\W+/g, "-").toLowerCase()}`;
  return el("div", {class: "field"}, el("label", {for: input.id}, name), input, rest);
}

// A slider over a list of values, which has the value taken even where the list has not.
function slider({key, name, values, of = "strategy", hidden}, change) {
  const input = el("input", {type: "range", min: 0, step: 1});
  const shown = el("output");
  const place = field(name, input);
  place.firstChild.append(shown);
  let steps = [1];
  const show = () => {
    const value = steps[input.value];
    shown.textContent = value.toLocaleString("en-US");
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.addEventListener("input", () => {
    show();
    change({[key]: String(steps[input.value])});
  });
  const update = (state, reply) => {
    const facts = facts_of(state, reply);
    place.hidden = Boolean(hidden?.(facts));
    const value = Number(state[key] ?? reply?.[of][key] ?? 1) || 1;
    steps = [...new Set([...values(facts), value])].sort((x, y) => x - y);
    input.max = steps.length - 1;
    input.value = steps.indexOf(value);
    input.disabled = steps.length < 2;
    show();
  };
  return {place, update};
}

function choice({key, name, values, taken}, change) {
  const input = el("select");
  input.addEventListener("change", () => change({[key]: input.value}));
  const update = (state, reply) => {
    const value = state[key] ?? (reply ? taken(reply) : values[0]);
    input.replaceChildren(...[...new Set([...values, value])].map((each) => option(each, each, value)));
  };
  return {place: field(name, input), update};
}

function number({key, name, taken}, change) {
  const input = el("input", {type: "number", min: 1, inputmode: "numeric"});
  input.addEventListener("input", () => change({[key]: input.value}));
  const update = (state, reply) => {
    const value = state[key] ?? (reply ? taken(reply) : "");
    if (document.activeElement !== input) input.value = value;
  };
  return {place: field(name, input), update};
}

// A select whose values the program lists. `lists[list]`: [{name, text}].
function listed({key, name, list, taken, otherwise}, lists, change) {
  const input = el("select");
  input.addEventListener("change", () => change({[key]: input.value}));
  const update = (state, reply) => {
    const value = state[key] ?? (reply ? taken(reply) : "") ?? "";
    const known = lists[list];
    const entries = known.some((entry) => entry.name === value) ? known : [{name: value, text: otherwise ?? value}, ...known];
    input.replaceChildren(...entries.map((entry) => option(entry.name, entry.text, value)));
  };
  const place = field(name, input);
  return {place, update};
}

function pasted(change, cleared) {
  const area = el("textarea", {spellcheck: "false", placeholder: "{\"architectures\": [\"LlamaForCausalLM\"], ...}   or   torchrun pretrain_gpt.py --tensor-model-parallel-size 8 ..."});
  const file = el("input", {type: "file", accept: ".json,.sh,.toml,.py,.txt"});
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    area.value = await file.files[0].text();
    change(area.value);
  });
  area.addEventListener("input", () => change(area.value));
  const place = folded("Paste a config.json, a launch script or a command", field("Text of the file", area), field("Or open a file", file),
                       el("p", {class: "soft"}, "A config.json of Hugging Face, a command \"headroom estimate ...\", a launch script of Megatron-LM, torchrun or DeepSpeed in shell, a " +
                          "TOML file of torchtitan. YAML needs the program itself."),
                       el("div", {class: "buttons"}, el("button", {type: "button", onclick: () => { area.value = ""; cleared(); }}, "Back to a named model")));
  place.className = "paste";
  const update = ({text}) => {
    if (document.activeElement !== area) area.value = text ?? "";
    if (text) place.open = true;
  };
  return {place, update};
}

// `change(fields)`: takes over what a control says. `lists`: {models, systems, software}, filled as the program answers.
export function controls(lists, {change, paste, back}) {
  const model = listed({key: "model", name: "Model", list: "models", taken: (reply) => reply.model.name, otherwise: "the pasted model"}, lists,
                       (fields) => change({...fields, text: undefined}));
  const system = listed({key: "system", name: "System", list: "systems", taken: (reply) => reply.system.name}, lists, change);
  const devices = number({key: "devices", name: "GPUs", taken: ({strategy}) => strategy.devices}, change);
  const text = pasted(paste, back);
  const batch = number({key: "global_batch", name: "Global batch (sequences)", taken: ({workload}) => workload.global_batch}, change);
  const software = listed({key: "software", name: "Training stack", list: "software", taken: (reply) => reply.software?.name}, lists, change);
  const more = number({key: "more", name: "More flags of headroom estimate", taken: () => ""}, change);
  const more_input = more.place.querySelector("input");
  for (const [name, value] of Object.entries({type: "text", placeholder: "--optimizer muon", spellcheck: "false"})) more_input.setAttribute(name, value);
  for (const name of ["min", "inputmode"]) more_input.removeAttribute(name);
  const asked = [model, system, devices, text];
  const form = [...SLIDERS.map((each) => slider(each, change)), batch, ...CHOICES.map((each) => choice(each, change)), software, more];
  model.place.classList.add("wide-field");
  return {
    asked: asked.map(({place}) => place), form: form.map(({place}) => place),
    update: (state, reply) => { for (const each of [...asked, ...form]) each.update(state, reply); },
  };
}
