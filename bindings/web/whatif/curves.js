// Figures that explain activation memory, of Korthikanti et al. (K22), drawn from answers to the question of the page.
/* global el, section, folded, sortable, column, lines, scatter, stacked_bars, legend, bytes_text, seconds_text, percent, gib, count */
import {explain_command} from "./command.js";

const POLICIES = [
  {name: "TP alone", colour: 8, changes: {sequence_parallel: "no", recompute: "none"}},
  {name: "TP and SP", colour: 0, changes: {sequence_parallel: "yes", recompute: "none"}},
  {name: "TP, SP, selective recomputation", colour: 6, changes: {sequence_parallel: "yes", recompute: "selective"}},
  {name: "full recomputation", colour: 11, changes: {sequence_parallel: "yes", recompute: "full"}},
];

// Kinds of layers of an explanation, the most frequent first.
function kind_of(reply) {
  const kinds = reply.layer_kinds ?? [{ops: reply.ops, ...reply.layer}];
  return [...kinds].sort((x, y) => (y.count ?? 0) - (x.count ?? 0))[0];
}

// `ask`: runs a command, and resolves to its reply, or to null where the strategy is refused.
async function explained(ask, state, changes) { return ask(explain_command({...state, ...changes}, "--format", "json")); }

// Sequences around the one asked for, a factor of two between each two.
function sequences_around(sequence) { return [-3, -2, -1, 0, 1, 2, 3].map((power) => sequence * 2 ** power).filter((at) => at >= 256 && at % 1 === 0); }

async function budget_by_sequence(ask, state, {workload, strategy}) {
  const splits = strategy.context_parallel * strategy.tensor_parallel;
  const at = sequences_around(workload.sequence).filter((sequence) => sequence % (2 * splits) === 0);
  const series = [];
  for (const {name, colour, changes} of POLICIES) {
    const values = [];
    for (const sequence of at) {
      const reply = await explained(ask, state, {...changes, sequence: String(sequence)});
      values.push(reply ? kind_of(reply).stored_bytes : null);
    }
    if (values.some((value) => value !== null)) series.push({name, colour, values});
  }
  if (at.length < 2 || !series.length) return null;
  const rows = at.map((sequence, i) => ({sequence, values: series.map(({values}) => values[i])}));
  const columns = [column("sequence", (row) => row.sequence, count),
                   ...series.map(({name}, i) => column(name, (row) => row.values[i], bytes_text))];
  return section("Activation budget against sequence length",
                 "Bytes that one layer saves for one microbatch on one GPU. Terms in s² (unfused attention) bend the line; selective " +
                 "recomputation drops them.",
                 lines(at, series, {x: "sequence", y: "bytes of a layer", format_x: count, format_y: bytes_text, width: 90,
                                    label: `Activation bytes of a layer, for sequences from ${count(at[0])} to ${count(at.at(-1))}`}),
                 legend(series), folded("As a table", sortable(columns, rows, {caption: "activation budget by sequence"})));
}

// Bytes that TP ranks share, and those that each of them has a copy of.
function by_placement(reply) {
  const sums = {shared: 0, copied: 0};
  for (const {tensors} of kind_of(reply).ops)
    for (const {saved, placement, size_bytes: size} of tensors) if (saved) sums[placement.endsWith("split") ? "shared" : "copied"] += size;
  return sums;
}

async function unsplit_by_tensor_parallel(ask, state) {
  const rows = [];
  for (const size of [1, 2, 4, 8, 16]) {
    const changes = {tensor_parallel: String(size), expert_parallel: "", recompute: "none"};
    const alone = await explained(ask, state, {...changes, sequence_parallel: "no"});
    if (!alone) continue;
    const split = size > 1 ? await explained(ask, state, {...changes, sequence_parallel: "yes"}) : alone;
    const {shared, copied} = by_placement(alone);
    const with_sp = split ? kind_of(split).stored_bytes : null;
    rows.push({size, shared, copied, with_sp});
  }
  if (rows.length < 2) return null;
  const bars = rows.map(({size, shared, copied, with_sp}) => ({
    label: `TP ${size}`, amount: bytes_text(shared + copied),
    parts: [{name: "split over TP ranks", value: shared, colour: 0}, {name: "not split by TP alone", value: copied, colour: 3}],
    marks: with_sp === null ? [] : [{value: with_sp, held: true, tip: `with sequence parallelism: ${bytes_text(with_sp)}`}],
  }));
  const columns = [column("TP", (row) => row.size), column("split", (row) => row.shared, bytes_text),
                   column("not split", (row) => row.copied, bytes_text), column("with SP", (row) => row.with_sp, bytes_text)];
  return section("What tensor parallelism alone cannot split",
                 "Inputs of norms and dropouts lie whole on every TP rank, until sequence parallelism (SP) splits them, too.",
                 stacked_bars(bars, {format: bytes_text}),
                 legend([{name: "split over TP ranks", colour: 0}, {name: "not split by TP alone", colour: 3}, {name: "with SP", rule: "held"}]),
                 folded("As a table", sortable(columns, rows, {caption: "bytes of a layer by TP size"})));
}

// From the ladder of the reply: what recomputation frees, and what it costs.
export function payoff_section({views}, sequence_parallel) {
  const rungs = (views?.ladder ?? []).filter((rung) => rung.iteration_seconds && rung.sequence_parallel === sequence_parallel);
  const none = rungs.find((rung) => rung.recompute === "none");
  if (!none || rungs.length < 2) return null;
  const rows = rungs.map((rung) => ({...rung, freed: 1 - rung.activation_bytes / none.activation_bytes,
                                     slower: rung.iteration_seconds / none.iteration_seconds - 1}));
  const colours = {none: 8, selective: 6, full: 11};
  const name_of = (rung) => (rung.recompute === "none" ? "no recomputation" : `${rung.recompute} recomputation`);
  const groups = rows.map((rung) => ({name: name_of(rung), colour: colours[rung.recompute] ?? 4}));
  const points = rows.map((rung, group) => ({
    x: rung.activation_bytes, y: rung.iteration_seconds, group, big: true,
    tip: `${name_of(rung)}\n${gib(rung.activation_bytes)} of activations, ${seconds_text(rung.iteration_seconds)}`}));
  const columns = [column("recomputation", name_of, null, true), column("activations", (row) => row.activation_bytes, gib),
                   column("freed", (row) => row.freed, percent), column("iteration", (row) => row.iteration_seconds, seconds_text),
                   column("slower", (row) => row.slower, percent)];
  return section("The payoff of selective recomputation",
                 "Activations of the peak rank against the iteration. Selective recomputation pays where it moves far to the left and hardly up.",
                 scatter(points, groups, {x: "activations", y: "iteration", format_x: gib, format_y: seconds_text, height: 240,
                                          label: "Activations against the iteration, by recomputation"}),
                 sortable(columns, rows, {caption: "the payoff of recomputation"}));
}

// Resolves to the sections that answers were found for.
export async function curve_sections(ask, state, reply) {
  return [await budget_by_sequence(ask, state, reply), await unsplit_by_tensor_parallel(ask, state)].filter(Boolean);
}
