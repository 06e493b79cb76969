// Pages of plan, compare, frontier and sweep.

function estimate_page(reply) {
  return [verdict_line(reply.memory, reply.infeasible), headline_cards(reply), plan_sections(reply), notes_section(reply)];
}

function size_columns(plans) {
  const keys = ["devices", ...Object.keys(SHORT_SIZES), "data_sharding", "schedule", "precision"];
  return keys.filter((key) => new Set(plans.map((plan) => plan.strategy?.[key])).size > 1 ||
                              ["tensor_parallel", "pipeline_parallel", "data_parallel", "micro_batch"].includes(key))
      .map((key) => column(SHORT_SIZES[key] ?? (key === "devices" ? "GPUs" : spelled(key)), (plan) => plan.strategy?.[key], null,
                           !(key in SHORT_SIZES) && key !== "devices"));
}

function odds_text(odds) {
  return odds < 0.005 ? "below 1%" : odds > 0.995 ? "above 99%" : percent(odds, 0);
}

// What is believed of the plans of the list, as columns.
function belief_columns({choice, plans}) {
  if (!choice || plans.length < 2) return [];
  const belief = (plan) => choice.plans[plans.indexOf(plan)];
  return [...(choice.measured ? [column("expected", (plan) => belief(plan)?.expected_seconds, seconds_text)] : []),
          column("odds", (plan) => belief(plan)?.odds_of_fastest, odds_text)];
}

// Which plans are as good as the first, what was passed over for it, and what to measure first.
function choice_section({choice, plans}) {
  if (!choice || plans.length < 2) return null;
  const equal = choice.plans.map((belief, i) => belief.equal_within_noise && i > 0 ? i + 1 : null).filter(Boolean);
  const parts = [el("p", {}, (equal.length ? `Equal to plan 1 within the noise of predictions: plan${equal.length > 1 ? "s" : ""} ${equal.join(", ")}. ` : "") +
                             `The odds that plan 1 is the fastest are ${odds_text(choice.plans[0].odds_of_fastest)}.`)];
  if (choice.fastest) {
    const drawbacks = choice.spared.length ? `, passed over because of ${choice.spared.map(spelled).join(", ")}` : "";
    parts.push(el("p", {}, `A plan takes ${seconds_text(choice.fastest.iteration_seconds)} by prediction${drawbacks} ` +
                           "(--exact ranks by time alone):"), copied(choice.fastest.command));
  }
  if (choice.trials?.length) {
    const columns = [{name: "measure", long: true, value: (x) => x.plan.command, cell: (x) => el("code", {}, x.plan.command)},
                     column("iteration", (x) => x.plan.iteration_seconds, seconds_text),
                     column("expected loss after it", (x) => x.expected_loss_after, (x) => percent(x, 2))];
    parts.push(el("h3", {}, "Measure these first"),
               el("p", {class: "soft"}, "The plan believed to be the fastest takes " +
                                        `${percent(choice.expected_loss, 2)} longer, on average, than the one that is.`),
               sortable(columns, choice.trials, {caption: "trials"}));
  }
  return section("How sure the choice is", null, parts);
}

function plans_section(reply) {
  const {plans} = reply;
  const best = plans[0];
  const place = el("div");
  const show = (plan) => place.replaceChildren(
      el("h3", {}, `Plan ${plans.indexOf(plan) + 1}: ${sizes_text(plan.strategy)}`), plan.command ? copied(plan.command) : "",
      ...[plan.memory.ranks ? stacked_bars(rank_rows(plan.memory), {format: gib, limit: plan.memory.capacity_bytes}) : null,
          plan.time?.breakdown
              ? stacked_bars([{label: "iteration", parts: time_parts(plan.time.breakdown), amount: seconds_text(plan.time.iteration_seconds)}],
                             {format: seconds_text}) : null].filter(Boolean));
  const columns = [column("#", (plan) => plans.indexOf(plan) + 1),
                   ...(reply.systems ? [column("system", (plan) => plan.system, null, true)] : []), ...size_columns(plans),
                   column("recompute", (plan) => recompute_text(plan.strategy.recompute), null, true),
                   column("iteration", (plan) => plan.time?.iteration_seconds, seconds_text), ...belief_columns(reply),
                   column("slower", (plan) => plan.time && best.time ? plan.time.iteration_seconds / best.time.iteration_seconds - 1 : null, percent),
                   column("MFU", (plan) => plan.throughput?.mfu, percent), column("peak", (plan) => plan.memory.peak_bytes, gib),
                   column("held by PyTorch", (plan) => held_by(plan.memory)?.bytes, gib),
                   {name: "verdict", text: true, value: (plan) => plan.memory.verdict, cell: (plan) => verdict_cell(plan.memory.verdict)}];
  const left = reply.left_off?.plans;
  return section("Plans", "The fastest of each TP x PP x DP. Choose a row, by a click or with Enter, to see its memory and time." +
                 (left ? ` ${plans.length} of ${left} are listed.` : ""),
                 sortable(columns, plans, {choose: show, chosen: best, caption: "plans"}), place);
}

function pareto_section(reply) {
  const points = (reply.pareto ?? []).filter((point) => point.iteration_seconds);
  if (points.length < 2) return null;
  const best = reply.plans[0];
  const shown = points.map((point) => ({
    x: point.peak_bytes, y: point.iteration_seconds, group: 0,
    tip: `${gib(point.peak_bytes)}, ${seconds_text(point.iteration_seconds)}, MFU ${percent(point.mfu)}\n${point.command}`}));
  if (best?.time) {
    shown.push({x: best.memory.peak_bytes, y: best.time.iteration_seconds, group: 1, big: true,
                tip: `the best plan\n${gib(best.memory.peak_bytes)}, ${seconds_text(best.time.iteration_seconds)}`});
  }
  const columns = [column("peak", (x) => x.peak_bytes, gib), column("iteration", (x) => x.iteration_seconds, seconds_text),
                   column("MFU", (x) => x.mfu, percent),
                   {name: "command", long: true, value: (x) => x.command, cell: (x) => el("code", {}, x.command)}];
  return section("Memory against time", "Of the strategies that were searched, those of which none is both faster and smaller.",
                 scatter(shown, [{name: "Pareto front", colour: 0}, {name: "the best plan", colour: 3}],
                         {x: "peak memory", y: "iteration", format_x: gib, format_y: seconds_text,
                          line: best?.memory.capacity_bytes, label: `Pareto front of ${points.length} strategies`}),
                 folded("As a table", sortable(columns, points, {caption: "Pareto front"})));
}

function searched_section(reply) {
  const rejected = Object.entries(reply.rejected ?? {}).map(([reason, number]) => ({reason: spelled(reason), number}));
  const parts = [el("p", {}, `${count(reply.evaluated)} strategies were evaluated, ${count(reply.feasible)} fit.`)];
  if (rejected.length) {
    parts.push(el("h3", {}, "Rejected"), el("p", {class: "soft"}, "By rules, before they count as evaluated, or for memory."),
               sortable([column("because of", (x) => x.reason, null, true),
                                                   column("strategies", (x) => x.number, count)], rejected, {caption: "rejections"}));
  }
  if (reply.left_out?.length) {
    parts.push(el("h3", {}, "Not searched"), sortable([
      {name: "change", text: true, value: (x) => x.change, cell: (x) => el("code", {}, x.change)},
      column("iteration", (x) => x.iteration_seconds, seconds_text), column("peak", (x) => x.peak_bytes, gib)],
                                                      reply.left_out, {caption: "changes that were not searched"}));
  }
  return section("What was searched", null, parts);
}

// What an inverse question found.
function found_text({find, value, least, most, at_least: more, obstacle}) {
  const name = spelled(find.replaceAll("-", "_"));
  if (value === null) return `${name}: nothing from ${count(least)} to ${count(most)} works${obstacle ? `: ${obstacle}` : ""}`;
  return `${name}: ${count(value)}${more ? " or more" : ""}`;
}

// What stands between the best plan and a faster one.
function limits_section({blocked_by_memory: blocked, in_fp8: narrower, faster_but_marginal: marginal}) {
  const lines = [];
  if (blocked) {
    lines.push(`${blocked.change} would take ${seconds_text(blocked.iteration_seconds)}, but lacks ` +
               `${gib(blocked.missing_bytes)} of ${blocked.limit === "host_memory" ? "host" : "GPU"} memory.`);
  }
  if (marginal) {
    lines.push(`${seconds_text(marginal.iteration_seconds)} within the safety margin, at ${gib(marginal.peak_bytes)}: ${marginal.command}`);
  }
  if (narrower) {
    lines.push(`The best plan in ${narrower.precision} would take ${seconds_text(narrower.iteration_seconds)} and ` +
               `${gib(narrower.peak_bytes)}; it ${VERDICTS[narrower.verdict]}.`);
  }
  return lines.length ? section("What would be faster", null, el("ul", {}, lines.map((line) => el("li", {}, line)))) : null;
}

function why_section(why) {
  if (!why) return null;
  const parts = why.problems.map(({flag, rule}) => el("p", {}, el("code", {}, flag), ` ${rule}`));
  if (why.verdict) {
    const [rank, largest] = [why.peak_rank, why.largest_component];
    parts.push(el("p", {}, `It ${VERDICTS[why.verdict]}: PP rank ${rank} takes ${gib(why.peak_bytes)}, of which ${largest.name} ` +
                           `${gib(largest.bytes)}. An iteration takes ${seconds_text(why.iteration_seconds)}, MFU ${percent(why.mfu)}.`));
  }
  if (why.against_best) {
    const rows = [...term_rows(why.against_best.time).map((row) => ({...row, format: seconds_text})),
                  ...term_rows(why.against_best.memory).map((row) => ({...row, format: gib}))];
    const terms = (name, value) => ({name, value, cell: (row) => row.format(value(row))});
    parts.push(sortable([column("term", (row) => row.name, null, true), terms("best plan", (row) => row.before),
                         terms("this strategy", (row) => row.after)], rows, {caption: "terms against the best plan"}));
  }
  if (why.neighbours?.length) {
    parts.push(el("h3", {}, "Near it"), sortable([
      {name: "change", long: true, value: (x) => x.changes.join(" "), cell: (x) => el("code", {}, x.changes.join(" "))},
      column("iteration", (x) => x.iteration_seconds, seconds_text), column("peak", (x) => x.peak_bytes, gib)],
                                                 why.neighbours, {caption: "strategies near it"}));
  }
  return section(`Why not ${why.flags}`, null, parts);
}

function plan_page(reply) {
  const best = reply.plans[0];
  if (!best) {
    const nearest = reply.nearest;
    return [el("div", {class: "verdict does_not_fit", role: "status"}, "Nothing fits."),
            reply.obstacle ? el("p", {}, reply.obstacle) : null,
            ...(reply.feasible_with ?? []).map((found) => el("p", {}, found_text(found))),
            why_section(reply.why),
            nearest ? section("Nearest", "The strategy that needs the least memory.", el("p", {}, `${gib(nearest.peak_bytes)}`),
                              copied(nearest.command)) : null,
            searched_section(reply)];
  }
  const of_all = {...reply, ...best, system: reply.system, warnings: best.warnings};
  return [verdict_line(best.memory), reply.found ? el("p", {}, found_text(reply.found)) : null, headline_cards(best),
          plans_section(reply), choice_section(reply), why_section(reply.why), limits_section(reply), pareto_section(reply), plan_sections(best),
          searched_section(reply), notes_section(of_all)];
}

function term_name(key) {
  return TIME_NAMES[key.replace(/_seconds$/, "")] ?? MEMORY_PARTS.find((part) => part.key === key)?.name ?? spelled(key);
}

function term_rows(terms) {
  return Object.entries(terms).filter(([, term]) => term.before || term.after)
      .map(([key, term]) => ({key, name: term_name(key), ...term}));
}

// The last term is the sum of the others.
function terms_section(title, lead, terms, colours, format) {
  const rows = term_rows(terms);
  if (!rows.length) return null;
  const total = rows.at(-1);
  const parts = (side) => rows.slice(0, -1).filter((row) => row[side] > 0)
      .map((row) => ({name: row.name, value: row[side], colour: colours(row.key)}));
  const bars = ["before", "after"].map((side) => ({label: side, parts: parts(side), amount: format(total[side])}));
  const columns = [column("term", (x) => x.name, null, true), column("before", (x) => x.before, format),
                   column("after", (x) => x.after, format), column("difference", (x) => x.difference, (x) => signed(x, format)),
                   column("relative", (x) => x.before ? x.after / x.before - 1 : null, (x) => signed(x, percent))];
  return section(title, lead, stacked_bars(bars, {format}), legend(legend_of(bars)), sortable(columns, rows, {caption: title}));
}

function compare_page(reply) {
  const sides = ["before", "after"].map((side) => {
    const {strategy, workload, verdict, mfu} = reply[side];
    return card(side, sizes_text(strategy), [VERDICTS[verdict], mfu ? `MFU ${percent(mfu)}` : null, recompute_text(strategy.recompute),
                                             strategy.sequence_parallel ? "SP" : null, `GBS ${workload.global_batch}`].filter(Boolean).join(", "));
  });
  const memory_colour = (key) => MEMORY_PARTS.find((part) => part.key === key)?.colour ?? 12;
  const time_colour = (key) => TIME_COLOURS[key.replace(/_seconds$/, "")] ?? 12;
  return [el("div", {class: `verdict ${reply.after.verdict}`, role: "status"}, `With ${reply.change}: ${VERDICTS[reply.after.verdict]}.`),
          el("div", {class: "cards"}, sides),
          terms_section("Time", "Of the busiest rank of each.", reply.time, time_colour, seconds_text),
          terms_section("Memory", "Of the rank with the peak of each.", reply.memory, memory_colour, gib)];
}

function frontier_page(reply) {
  const point_tip = (point) => `${gib(point.peak_bytes)}, ${seconds_text(point.iteration_seconds)}\n` +
                               `${point.policy ?? ""} ${(point.layer?.ops ?? []).join(", ")}`;
  const points = [
    ...reply.points.map((point) => ({x: point.peak_bytes, y: point.iteration_seconds, group: 0, tip: point_tip(point)})),
    ...reply.policies.map((point) => ({x: point.peak_bytes, y: point.iteration_seconds, group: 1, big: true,
                                       tip: `${point.policy}\n${point_tip(point)}`})),
    ...reply.budgets.filter((budget) => budget.uniform).map(({uniform}) => ({
      x: uniform.peak_bytes, y: uniform.iteration_seconds, group: 2, big: true, tip: `best within the budget\n${point_tip(uniform)}`})),
  ];
  const columns = [column("peak", (x) => x.peak_bytes, gib), column("iteration", (x) => x.iteration_seconds, seconds_text),
                   column("MFU", (x) => x.mfu, percent), column("policy", (x) => x.policy, null, true),
                   column("of layers", (x) => x.recompute_layers || null),
                   {name: "ops", long: true, value: (x) => x.layer?.ops.join(", ") ?? "", cell: (x) => x.layer?.ops.join(", ") ?? ""}];
  const set_columns = [column("saved", (x) => x.saved_bytes, bytes_text), column("recomputed", (x) => x.recomputed_bytes, bytes_text),
                       column("recompute time", (x) => x.recompute_seconds, seconds_text),
                       {name: "ops", long: true, value: (x) => x.ops.join(", "), cell: (x) => x.ops.join(", ")}];
  const budgets = reply.budgets.map((budget) => ({...budget, found: budget.uniform}));
  const left = reply.left_off?.points;
  return [
    section("Memory against time", "What to recompute of a layer: the points of the frontier, the usual policies, and the best within each budget." +
            (left ? ` ${reply.points.length} of ${left} points are drawn.` : ""),
            scatter(points, [{name: "frontier", colour: 0}, {name: "usual policies", colour: 6}, {name: "best within a budget", colour: 3}],
                    {x: "peak memory", y: "iteration", format_x: gib, format_y: seconds_text, height: 380,
                     line: reply.budgets[0]?.budget_bytes, label: `frontier of ${reply.points.length} points`})),
    section("Within each budget", null, sortable([
      column("budget", (x) => x.budget_bytes, gib), column("peak", (x) => x.found?.peak_bytes, gib),
      column("iteration", (x) => x.found?.iteration_seconds, seconds_text),
      {name: "flags", long: true, value: (x) => x.found?.flags ?? "", cell: (x) => x.found ? el("code", {}, x.found.flags) : "nothing fits"}],
                                                 budgets, {caption: "budgets"})),
    section("Usual policies", null, sortable(columns, reply.policies, {caption: "usual policies"})),
    section("Points", null, sortable(columns, reply.points, {caption: "points of the frontier"})),
    reply.layer_front ? section("Sets of ops of a layer", "Sets of which none saves less and recomputes faster.",
                                sortable(set_columns, reply.layer_front, {caption: "sets of ops"})) : null,
  ];
}

// Whether numbers are told apart best on a logarithmic axis.
function is_wide(values) { return Math.min(...values) > 0 && Math.max(...values) >= 16 * Math.min(...values); }

function is_number(value) { return typeof value === "number"; }

function sweep_page(reply) {
  const {rows} = reply;
  const fields = reply.axes.flat().map(({field}) => field);
  const measures = {iteration_seconds: seconds_text, peak_bytes: gib, mfu: percent, tokens_per_second: count,
                    tokens_per_second_per_device: count};
  const given = Object.keys(measures).filter((key) => rows.some((row) => is_number(row[key])));
  const point_text = (row) => fields.map((field) => `${spelled(field)} ${row.point[field]}`).join(", ");
  const columns = [...fields.map((field) => column(spelled(field), (row) => row.point[field], null, !is_number(rows[0]?.point[field]))),
                   {name: "verdict", text: true, value: (row) => row.verdict, cell: (row) => verdict_cell(row.verdict)},
                   ...given.map((key) => column(key === "mfu" ? "MFU" : spelled(key), (row) => row[key], measures[key])),
                   ...(rows.some((row) => row.strategy) ? [{name: "strategy", long: true, value: (row) => row.strategy,
                                                            cell: (row) => row.strategy ? el("code", {}, row.strategy) : ""}] : [])];
  const numeric = fields.filter((field) => rows.every((row) => is_number(row.point[field])));
  const parts = [];
  if (numeric.length && given.length) {
    const place = el("div");
    const axis_choice = el("select", {"aria-label": "across"}, numeric.map((field) => el("option", {value: field}, spelled(field))));
    const measure_choice = el("select", {"aria-label": "shown"}, given.map((key) => el("option", {value: key}, key === "mfu" ? "MFU" : spelled(key))));
    const groups = [{name: "fits", colour: 6}, {name: "marginal", colour: 3}, {name: "does not fit", colour: 8}];
    const group_of = {fits: 0, marginal: 1, does_not_fit: 2};
    const draw = () => {
      const [field, key] = [axis_choice.value, measure_choice.value];
      const points = rows.filter((row) => is_number(row[key])).map((row) => ({
        x: row.point[field], y: row[key], group: group_of[row.verdict] ?? 0,
        tip: `${point_text(row)}\n${spelled(key)}: ${measures[key](row[key])}\n${VERDICTS[row.verdict] ?? ""}`}));
      place.replaceChildren(...scatter(points, groups, {x: spelled(field), y: spelled(key), format_x: count, format_y: measures[key],
                                                        log: is_wide(points.map((point) => point.x)),
                                                        height: 360, label: `${spelled(key)} of ${points.length} points`}).filter(Boolean));
    };
    axis_choice.addEventListener("change", draw);
    measure_choice.addEventListener("change", draw);
    draw();
    parts.push(el("div", {class: "tools"}, el("label", {}, "Show ", measure_choice), el("label", {}, " across ", axis_choice)), place);
  }
  const left = reply.left_off?.rows;
  return [section("Points", `${count(reply.points)} points.${left ? ` ${rows.length} of ${left} are listed.` : ""}`, parts),
          section("All rows", null, sortable(columns, rows, {caption: "rows of the sweep"}))];
}
