// The account of one plan: of `estimate`, and of the first plan of `plan`.

function held_by(memory) {
  const {allocator, ranks} = memory;
  if (!allocator) return null;
  const rank = ranks?.find(({pipeline_rank: number}) => number === allocator.rank);
  return {rank: allocator.rank, bytes: allocator.reserved_bytes + (rank?.non_torch_bytes ?? 0)};
}

function verdict_line(memory, infeasible) {
  const held = held_by(memory);
  const most = Math.max(memory.peak_bytes, held?.bytes ?? 0);
  const rank = held && held.bytes > memory.peak_bytes ? held.rank : memory.peak_rank;
  const capacity = gib(memory.capacity_bytes);
  const texts = {
    fits: `Fits: PP rank ${rank} holds the most, ${gib(most)} of ${capacity}.`,
    marginal: `Marginal: PP rank ${rank} holds ${gib(most)} of ${capacity}, within the safety margin.`,
    does_not_fit: infeasible?.limit === "host_memory"
        ? `Does not fit: the host needs ${gib(infeasible.needed_bytes)} of ${gib(infeasible.available_bytes)}.`
        : `Does not fit: PP rank ${rank} breaks first, it needs ${gib(most)} of ${capacity}.`,
  };
  return el("div", {class: `verdict ${memory.verdict}`, role: "status"}, texts[memory.verdict]);
}

function headline_cards({memory, time, throughput, budget, strategy, workload}) {
  const held = held_by(memory);
  const cards = [];
  if (time) {
    const {low_seconds: low, high_seconds: high} = time.interval;
    cards.push(card("Iteration", seconds_text(time.iteration_seconds),
                    `80% interval ${seconds_text(low)} to ${seconds_text(high)}`));
  }
  if (throughput) {
    cards.push(card("MFU", percent(throughput.mfu),
                    `${throughput.tflops_per_device.toFixed(0)} TFLOP/s a GPU of ${throughput.peak_tflops.toFixed(0)}`));
    cards.push(card("Tokens a second", count(throughput.tokens_per_second),
                    `${count(throughput.tokens_per_second_per_device)} a GPU`));
  }
  cards.push(card("Peak of tensors", gib(memory.peak_bytes), `PP rank ${memory.peak_rank}, capacity ${gib(memory.capacity_bytes)}`));
  if (held) cards.push(card("Held by PyTorch", gib(held.bytes), `reserved and non-torch memory of PP rank ${held.rank}`));
  if (budget) {
    const {days, price, kilowatt_hours: energy} = budget;
    const figures = [price === undefined ? null : `costs ${count(price)}`,
                     energy === undefined ? null : `${count(energy / 1000)} MWh`].filter(Boolean).join(", ");
    cards.push(card("Training run", `${days.toFixed(1)} days`, figures));
  }
  if (strategy) {
    const recompute = recompute_text(strategy.recompute);
    const others = [strategy.sequence_parallel ? "SP" : null, strategy.data_sharding !== "none" ? strategy.data_sharding : null,
                    strategy.precision, recompute && recompute !== "none" ? `recompute ${recompute}` : "no recomputation"];
    cards.push(card(`${count(strategy.devices)} GPUs, GBS ${count(workload?.global_batch ?? 0)}, sequence ${count(workload?.sequence ?? 0)}`,
                    sizes_text(strategy).replaceAll(/(\w) (\d)/g, "$1\u00a0$2"), others.filter(Boolean).join(", ")));
  }
  return el("div", {class: "cards"}, cards);
}

function rank_rows(memory) {
  const held = held_by(memory);
  return memory.ranks.map((rank) => ({
    label: `PP rank ${rank.pipeline_rank}`, parts: memory_parts(rank), amount: gib(rank.total_bytes),
    marks: held?.rank === rank.pipeline_rank
        ? [{value: held.bytes, held: true, tip: `PyTorch reserves, with non-torch memory: ${gib(held.bytes)}`}] : [],
  }));
}

function memory_section(memory) {
  if (!memory.ranks) return null;
  const rows = rank_rows(memory);
  const entries = legend_of(rows);
  entries.push({name: "capacity", rule: "rule"});
  if (memory.allocator) entries.push({name: "held by PyTorch", rule: "held"});
  const parts = MEMORY_PARTS.filter(({key}) => memory.ranks.some((rank) => ({...rank, ...rank.activations})[key]));
  const columns = [column("PP rank", (rank) => rank.pipeline_rank), column("layers", (rank) => rank.layers),
                   ...parts.map(({key, name}) => column(name, (rank) => ({...rank, ...rank.activations})[key], gib)),
                   column("total", (rank) => rank.total_bytes, gib)];
  return section("Memory of each pipeline rank", "At the rank's peak, against what a GPU has.",
                 stacked_bars(rows, {format: gib, limit: memory.capacity_bytes}), legend(entries),
                 folded("As a table", sortable(columns, memory.ranks, {caption: "memory of each pipeline rank"})));
}

function tensors_section(tensors, memory) {
  if (!tensors?.length) return null;
  const all = tensors.map((tensor) => ({...tensor, total: tensor.bytes * tensor.count}));
  const top = all.slice(0, 12);
  const kinds = new Map();
  for (const tensor of all) if (!kinds.has(tensor.layers)) kinds.set(tensor.layers, [3, 5, 6, 8, 10, 9][kinds.size % 6]);
  const rows = top.map((tensor) => ({
    label: `${tensor.op}: ${tensor.tensor}`, amount: bytes_text(tensor.total),
    parts: [{name: tensor.layers, value: tensor.total, colour: kinds.get(tensor.layers),
             tip: `${tensor.tensor} of ${tensor.op} (${tensor.layers}, ${tensor.dtype})\n${count(tensor.count)} of ` +
                  `${bytes_text(tensor.bytes)} = ${tensor.bytes_expression}` +
                  (tensor.freed_by.length ? `\nfreed by recomputing ${tensor.freed_by.join(", ")}` : "")}],
  }));
  const columns = [column("tensor", (x) => x.tensor, null, true), column("op", (x) => x.op, null, true),
                   column("layers", (x) => x.layers, null, true), column("dtype", (x) => x.dtype, null, true),
                   column("bytes of one", (x) => x.bytes, bytes_text), column("expression", (x) => x.bytes_expression, null, true),
                   column("number", (x) => x.count, count), column("all", (x) => x.total, bytes_text),
                   column("freed by recomputing", (x) => x.freed_by.join(", "), null, true)];
  return section("Largest tensors at the peak",
                 `Saved on PP rank ${memory.peak_rank}, of all layers and microbatches in flight.`,
                 stacked_bars(rows, {format: bytes_text, thin: true}), legend_of(rows).length > 1 ? legend(legend_of(rows)) : null,
                 folded(`All ${all.length} as a table`, sortable(columns, all, {caption: "saved tensors at the peak"})));
}

function time_section(time) {
  if (!time) return null;
  const parts = time_parts(time.breakdown);
  const whole = time.iteration_seconds;
  const rows = [{label: "iteration", parts, amount: seconds_text(whole)}];
  const each = [...parts].sort((a, b) => b.value - a.value).map((part) => ({
    label: part.name, parts: [part], amount: `${seconds_text(part.value)} (${percent(part.value / whole)})`}));
  return section("Where the iteration goes", `On PP rank ${time.critical_rank}, the busiest. The parts add up to the iteration.`,
                 stacked_bars(rows, {format: seconds_text}), legend(legend_of(rows)), el("h3", {}, "Largest first"),
                 stacked_bars(each, {format: seconds_text, thin: true}));
}

function layer_rows(ops) {
  return ops.filter((op) => op.tensors?.length).map((op) => ({
    label: op.name, amount: op.stored_bytes ? bytes_text(op.stored_bytes) : "recomputed",
    parts: op.tensors.map((tensor) => ({
      name: tensor.saved ? "saved" : "recomputed", value: tensor.size_bytes, colour: tensor.saved ? 3 : 12,
      tip: `${op.name}: ${tensor.name} (${tensor.dtype})\n${tensor.size} = ${bytes_text(tensor.size_bytes)}\n` +
           (tensor.saved ? `saved: ${tensor.why}` : "dropped and recomputed"),
    })),
  }));
}

function sums_line(sums) {
  return el("p", {}, "Saved: ", el("span", {class: "equation"}, sums.stored), ` = ${bytes_text(sums.stored_bytes)}`,
            sums.recomputed_bytes ? [". Recomputed: ", el("span", {class: "equation"}, sums.recomputed),
                                     ` = ${bytes_text(sums.recomputed_bytes)}`] : null, ".");
}

// What the letters of the layer's expressions mean, those of Korthikanti et al. and others.
function letters_line(layer) {
  const kinds = layer.layer_kinds ?? [layer];
  const shown = [...kinds.flatMap((kind) => [kind.layer?.stored, kind.layer?.recomputed, ...(kind.ops ?? []).flatMap((op) =>
    (op.tensors ?? []).map((tensor) => tensor.size))]), layer.embedding?.stored, layer.head?.stored, ...(layer.equalities ?? [])].join(" ");
  const letters = (layer.letters ?? []).filter(({letter}) => shown.includes(letter));
  const value_of = ({letter, value}) => value !== undefined ? [count(value)]
      : kinds.filter((kind) => kind.sizes?.[letter]).map((kind) => `${count(kind.sizes[letter])} (${kind.name})`);
  const texts = [...letters.map((letter) => `${letter.letter} = ${value_of(letter).join(", ")}: ${letter.meaning}`),
                 ...(layer.equalities ?? [])];
  return texts.length ? folded("What the letters mean", el("ul", {}, texts.map((text) => el("li", {}, text)))) : null;
}

function layer_section(layer) {
  if (!layer) return null;
  const kinds = layer.layer_kinds ?? [{name: "layer", ops: layer.ops, layer: layer.layer}];
  const parts = kinds.map((kind) => {
    const sums = kind.layer ?? kind;
    return [kinds.length > 1 ? el("h3", {}, `${kind.name}${kind.count ? `, ${kind.count} layers` : ""}`) : null,
            sums.stored !== undefined ? sums_line(sums) : null,
            stacked_bars(layer_rows(kind.ops ?? []), {format: bytes_text, thin: true})];
  });
  const ends = ["embedding", "head"].filter((name) => layer[name]?.stored !== undefined);
  return section("Activation budget of a layer", "Bytes that one layer saves for one microbatch on one GPU, by op.", parts,
                 letters_line(layer), legend([{name: "saved", colour: 3}, {name: "recomputed", colour: 12}]),
                 ends.map((name) => [el("h3", {}, name === "head" ? "Output layer" : "Embedding"), sums_line(layer[name])]));
}

function ladder_section(ladder, memory, strategy) {
  if (!ladder || ladder.length < 2) return null;
  const own = (rung) => rung.sequence_parallel === strategy.sequence_parallel && rung.recompute === strategy.recompute.policy &&
                        !strategy.recompute.layers;
  const rows = ladder.map((rung) => ({
    label: `${rung.recompute === "none" ? "no" : rung.recompute} recomputation${rung.sequence_parallel ? ", SP" : ""}` +
           (own(rung) ? " (this one)" : ""),
    amount: [gib(rung.peak_bytes, 1), rung.iteration_seconds ? seconds_text(rung.iteration_seconds) : null,
             VERDICTS[rung.verdict]].filter(Boolean).join(", "),
    parts: [{name: "weights, gradients, optimizer and the rest", value: rung.peak_bytes - rung.activation_bytes, colour: 1},
            {name: "activations", value: rung.activation_bytes, colour: 3}],
  }));
  return section("Memory against recomputation", "The same layout with other recomputation and sequence parallelism: the peak " +
                 "rank's memory, the iteration and the verdict.",
                 stacked_bars(rows, {format: gib, limit: memory.capacity_bytes}),
                 legend([...legend_of(rows), {name: "capacity", rule: "rule"}]));
}

function frontier_section({frontier, ladder} = {}, {memory, time, strategy}) {
  if (!frontier || frontier.length < 2) return null;
  const point = (group, peak, seconds, name) => ({x: peak, y: seconds, group, big: group === 1,
                                                  tip: `${gib(peak)}, ${seconds_text(seconds)}\n${name}`});
  const points = frontier.map((set) => point(0, set.peak_bytes, set.iteration_seconds, recompute_text(set.recompute)));
  for (const rung of ladder ?? []) {
    if (rung.sequence_parallel === strategy.sequence_parallel && rung.iteration_seconds)
      points.push(point(2, rung.peak_bytes, rung.iteration_seconds, `${rung.recompute === "none" ? "no" : rung.recompute} recomputation`));
  }
  points.push(point(1, memory.peak_bytes, time.iteration_seconds, `this plan: ${recompute_text(strategy.recompute)}`));
  return section("What recomputation buys", "The same layout: for every budget of memory the set of ops of a layer, and the number of layers, " +
                 "that takes the least time. The dashed line is the memory of a GPU.",
                 scatter(points, [{name: "frontier", colour: 0}, {name: "this plan", colour: 3}, {name: "usual policies", colour: 6}],
                         {x: "peak memory", y: "iteration", format_x: gib, format_y: seconds_text,
                          line: memory.capacity_bytes, label: `frontier of ${frontier.length} sets with the plan on it`}));
}

function routing_section(routing) {
  if (!routing) return null;
  const columns = [column("quantile of loads", (x) => x.quantile, (x) => percent(x, 0)),
                   column("load for memory", (x) => x.memory_load, (x) => x.toFixed(2)),
                   column("load for time", (x) => x.time_load, (x) => x.toFixed(2)), column("peak", (x) => x.peak_bytes, gib),
                   column("iteration", (x) => x.iteration_seconds, seconds_text),
                   {name: "verdict", text: true, value: (x) => x.verdict, cell: (x) => verdict_cell(x.verdict)}];
  return section("Loads of experts", `Tokens of the fullest rank against a balanced one (${spelled(routing.balancing)}). ` +
                 `Chance to run out of memory within ${count(routing.steps)} steps: ${percent(routing.out_of_memory)}.`,
                 sortable(columns, routing.loads, {caption: "loads of experts"}));
}

function alternatives_section(alternatives, memory, time) {
  if (!alternatives?.length) return null;
  const columns = [{name: "change", long: true, value: (x) => x.changes.join(" "), cell: (x) => el("code", {}, x.changes.join(" "))},
                   column("GPUs", (x) => x.devices, count), column("peak", (x) => x.peak_bytes, gib),
                   column("memory against this", (x) => x.peak_bytes - memory.peak_bytes, (x) => signed(x, gib)),
                   column("iteration", (x) => x.iteration_seconds, seconds_text),
                   column("time against this", (x) => time && x.iteration_seconds ? x.iteration_seconds / time.iteration_seconds - 1 : null,
                          (x) => signed(x, percent))];
  return section(memory.verdict === "fits" ? "Changes that would help" : "Changes that make it fit", "Each was evaluated.",
                 sortable(columns, alternatives, {caption: "alternatives"}));
}

function launch_section({launch, command, plan_command: search}) {
  if (!launch && !command && !search) return null;
  const parts = [];
  if (command) parts.push(el("h3", {}, "This estimate"), copied(command));
  if (search) parts.push(el("h3", {}, "A search of all strategies on as many GPUs"), copied(search));
  if (launch) {
    parts.push(el("h3", {}, `Launch with ${launch.release ?? launch.launcher}`));
    if (launch.lacks?.length) parts.push(el("p", {class: "soft"}, `It cannot say: ${launch.lacks.join("; ")}`));
    for (const [name, text] of Object.entries(launch.files)) parts.push(folded(name, copied(text)));
    if (!Object.keys(launch.files).length) parts.push(copied([launch.command, launch.flags].flat().join(" ")));
  }
  return section("Start it", null, parts);
}

function notes_section({assumptions, warnings, time, memory, model, system, software}) {
  const parts = [];
  if (warnings?.length)
    parts.push(el("h3", {}, "Warnings"), el("ul", {}, warnings.map(({text}) => el("li", {}, text))));
  if (assumptions?.length) {
    parts.push(el("h3", {}, "Assumed"), el("ul", {}, assumptions.map(({text, source}) =>
        el("li", {}, text, source ? el("div", {class: "soft"}, source) : null))));
  }
  const sources = [];
  if (time?.interval?.source) sources.push(["80% interval of the iteration", time.interval.source]);
  if (memory?.allocated?.interval?.source) sources.push(["80% interval of allocated memory", memory.allocated.interval.source]);
  for (const [name, of] of [["model", model], ["system", system], ["software", software]])
    if (of?.source) sources.push([`${name} ${of.name}`, of.source]);
  if (sources.length)
    parts.push(el("h3", {}, "Sources"), el("ul", {}, sources.map(([name, text]) => el("li", {}, name, el("div", {class: "soft"}, text)))));
  return parts.length ? section("What it rests on", null, parts) : null;
}

// Everything about one plan, of which the parts that a reply does not have are left out.
function plan_sections(plan) {
  const {memory, time, views, strategy} = plan;
  return [
    memory_section(memory),
    tensors_section(memory.tensors, memory),
    time_section(time),
    views?.schedule ? schedule_section(views.schedule, memory) : null,
    layer_section(views?.layer),
    ladder_section(views?.ladder, memory, strategy),
    frontier_section(views, plan),
    routing_section(plan.routing),
    alternatives_section(plan.alternatives, memory, time),
    launch_section(plan),
  ];
}
