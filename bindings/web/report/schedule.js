// The pipeline's schedule as a Gantt chart, with the memory of one rank below it. Both show the same time.

const PASSES = {f: {name: "forward", colour: 0}, b: {name: "backward", colour: 6}, w: {name: "weight gradients", colour: 10}};
const RECOMPUTE = {name: "recompute", colour: 4};
const COLLECTIVE = {name: "data-parallel collectives", colour: 9};
const OTHER_WORK = {name: "optimizer and other work", colour: 8};

// Width of the axes of both charts, so that a time is at one place in both.
const SCHEDULE_AXIS = 100;

// The pass of a rank that runs at a time, by halves: passes of a rank begin in order.
function pass_at(rank, time) {
  let [low, high] = [0, rank.start_us.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rank.start_us[middle] <= time) low = middle + 1;
    else high = middle;
  }
  for (let i = low - 1; i >= Math.max(0, low - 3); --i)
    if (time <= rank.start_us[i] + rank.duration_us[i]) return i;
  return -1;
}

function pass_text(rank, i) {
  const pass = PASSES[rank.passes[i].toLowerCase()];
  const recompute = rank.recompute_us?.[i];
  return `PP rank ${rank.pipeline_rank}: ${pass.name} of microbatch ${rank.microbatch[i]}` +
      `, virtual stage ${rank.virtual_stage[i]}, ${seconds_text(rank.start_us[i] / 1e6)} to ` +
      seconds_text((rank.start_us[i] + rank.duration_us[i]) / 1e6) +
      (recompute ? `, of which ${seconds_text(recompute / 1e6)} recompute` : "");
}

// Times and levels of a rank's memory, as it changes.
function memory_steps(rank, levels, end) {
  const times = [0];
  const held = [levels[rank.resident]];
  const set = (time, level) => {
    if (level === held.at(-1)) return;
    times.push(Math.max(time, times.at(-1)));
    held.push(level);
  };
  for (let i = 0; i < rank.start_us.length; ++i) {
    const start = rank.start_us[i] / 1e6;
    if (rank.passes[i].toLowerCase() === "b") {
      const before = held.at(-1);
      set(start, levels[rank.highest[i]]);
      if (rank.recompute_us?.[i]) set(start + rank.recompute_us[i] / 1e6, before);
    }
    set(start + rank.duration_us[i] / 1e6, levels[rank.after[i]]);
  }
  times.push(Math.max(end, times.at(-1)));
  held.push(held.at(-1));
  return [times, held];
}

function gantt(schedule, on_zoom) {
  const {ranks, spans} = schedule;
  const end = schedule.shown_seconds;
  const row_height = ranks.length > 16 ? 14 : ranks.length > 6 ? 24 : 36;
  const by_rank = new Map(ranks.map((rank, row) => [rank.pipeline_rank, row]));
  const readout = el("div", {class: "readout", "aria-live": "polite"}, "Point at a pass to read it; drag to zoom.");
  const options = {
    cursor: {drag: {x: true, y: false}, points: {show: false}, sync: {key: "schedule"}},
    scales: {x: {time: false, range: (plot, low, high) => [Math.max(0, low), Math.min(end, high)]},
             y: {range: () => [0, ranks.length]}},
    axes: [axis("time", tick_seconds, 46),
           {...axis("", (value) => "", SCHEDULE_AXIS), grid: {show: false}, ticks: {show: false},
            splits: () => ranks.map((_, row) => ranks.length - row - 0.5),
            values: (plot, splits) => splits.map((_, row) =>
                ranks.length <= 16 || row % 4 === 0 ? `PP ${ranks[row].pipeline_rank}` : "")}],
    series: [{}, {show: true, paths: () => null, points: {show: false}}],
    hooks: {
      draw: [(plot) => {
        const {ctx, bbox} = plot;
        const colours = Object.fromEntries([...Object.values(PASSES), RECOMPUTE, COLLECTIVE, OTHER_WORK].map(
            ({name, colour: index}) => [name, css(`--c${index}`)]));
        const at = (time) => plot.valToPos(time, "x", true);
        const {min, max} = plot.scales.x;
        ctx.save();
        ctx.beginPath();
        ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
        ctx.clip();
        const tall = bbox.height / ranks.length;
        const box = (row, from, to, name, top, part) => {
          if (to < min || from > max) return;
          const left = at(from);
          ctx.fillStyle = colours[name];
          ctx.fillRect(left, bbox.top + (row + top) * tall, Math.max(at(to) - left - 0.6, 0.6), tall * part);
        };
        ranks.forEach((rank, row) => {
          const halves = /[A-Z]/.test(rank.passes);
          for (let i = 0; i < rank.start_us.length; ++i) {
            const letter = rank.passes[i];
            const below = letter !== letter.toLowerCase();
            const start = rank.start_us[i] / 1e6;
            const middle = start + (rank.recompute_us?.[i] ?? 0) / 1e6;
            const [top, part] = below ? [0.46, 0.32] : [0.1, halves ? 0.34 : 0.66];
            if (middle > start) box(row, start, middle, RECOMPUTE.name, top, part);
            box(row, middle, start + rank.duration_us[i] / 1e6, PASSES[letter.toLowerCase()].name, top, part);
          }
        });
        for (const span of spans) {
          const row = by_rank.get(span.pipeline_rank);
          if (row === undefined) continue;
          const start = span.start_us / 1e6;
          const name = span.collective ? COLLECTIVE.name : OTHER_WORK.name;
          box(row, start, start + span.duration_us / 1e6, name, span.collective ? 0.79 : 0.1, span.collective ? 0.14 : 0.66);
        }
        ctx.restore();
      }],
      setScale: [(plot, key) => { if (key === "x") on_zoom(plot.scales.x.min, plot.scales.x.max); }],
      setCursor: [(plot) => {
        const {left, top} = plot.cursor;
        if (left === null || left < 0 || top < 0) return;
        const row = ranks.length - 1 - Math.floor(plot.posToVal(top, "y"));
        const rank = ranks[Math.max(0, Math.min(ranks.length - 1, row))];
        const time = plot.posToVal(left, "x") * 1e6;
        const i = pass_at(rank, time);
        const span = spans.find((one) => one.pipeline_rank === rank.pipeline_rank && one.start_us <= time &&
                                         time <= one.start_us + one.duration_us);
        readout.textContent = i >= 0 ? pass_text(rank, i)
            : span ? `PP rank ${rank.pipeline_rank}: ${span.name}, ${seconds_text(span.duration_us / 1e6)}`
            : `PP rank ${rank.pipeline_rank} waits at ${seconds_text(time / 1e6)}`;
      }],
    },
  };
  const place = chart(options, [[0, end], [0, 0]], Math.min(ranks.length * row_height, 480) + 56,
                      `Schedule of ${schedule.pipeline_ranks} pipeline ranks over ${seconds_text(end)}`);
  return {place, readout};
}

function memory_chart(schedule, rank, capacity) {
  const [times, held] = memory_steps(rank, schedule.levels_bytes, schedule.shown_seconds);
  return lines(times, [{name: `PP rank ${rank.pipeline_rank}`, colour: 3, values: held}],
               {x: "time", y: "memory", format_x: seconds_text, format_y: gib, stepped: true, limit: capacity, width: SCHEDULE_AXIS - 24,
                height: 220, label: `Memory of PP rank ${rank.pipeline_rank} over the iteration, highest ` +
                                    gib(Math.max(...held))});
}

function schedule_section(schedule, memory) {
  const {ranks} = schedule;
  const memory_place = el("div");
  let below = null;
  const {place, readout} = gantt(schedule, (low, high) => {
    const plot = below?.plot();
    if (plot && (plot.scales.x.min !== low || plot.scales.x.max !== high)) plot.setScale("x", {min: low, max: high});
  });
  const show = (number) => {
    below = memory_chart(schedule, ranks.find((rank) => rank.pipeline_rank === number), memory.capacity_bytes);
    memory_place.replaceChildren(below);
  };
  const peak = ranks.some((rank) => rank.pipeline_rank === memory.peak_rank) ? memory.peak_rank : ranks[0].pipeline_rank;
  show(peak);
  const zoom = (factor, shift) => () => {
    const plot = place.plot();
    if (!plot) return;
    const {min, max} = plot.scales.x;
    const width = Math.min((max - min) * factor, schedule.shown_seconds);
    const middle = (min + max) / 2 + shift * (max - min);
    const low = Math.max(0, Math.min(middle - width / 2, schedule.shown_seconds - width));
    plot.setScale("x", {min: low, max: low + width});
  };
  const tool = (name, label, factor, shift) =>
      el("button", {type: "button", "aria-label": label, onclick: zoom(factor, shift)}, name);
  const chosen = el("select", {"aria-label": "PP rank of the memory chart", onchange: (event) => show(Number(event.target.value))},
                    ranks.map(({pipeline_rank: number}) =>
                        el("option", {value: number, selected: number === peak}, `PP rank ${number}`)));
  const all = ranks.reduce((sum, rank) => sum + rank.start_us.length, 0);
  const notes = [];
  if (ranks.length < schedule.pipeline_ranks) notes.push(`${ranks.length} of ${schedule.pipeline_ranks} pipeline ranks are drawn.`);
  if (schedule.shown_seconds < schedule.iteration_seconds) {
    notes.push(`The first ${seconds_text(schedule.shown_seconds)} of ${seconds_text(schedule.iteration_seconds)} ` +
               `are drawn (${count(all)} of ${count(schedule.passes)} passes).`);
  }
  const kinds = [...new Set(ranks.map((rank) => rank.passes.toLowerCase()).join(""))];
  const entries = kinds.map((letter) => PASSES[letter]);
  if (ranks.some((rank) => rank.recompute_us)) entries.push(RECOMPUTE);
  if (schedule.spans.some((span) => span.collective)) entries.push(COLLECTIVE);
  if (schedule.spans.some((span) => !span.collective)) entries.push(OTHER_WORK);
  return section("Schedule, and memory under it", notes.join(" ") || "One iteration: white is waiting.",
                 el("div", {class: "tools"}, tool("+", "Zoom in", 0.5, 0), tool("-", "Zoom out", 2, 0),
                    tool("\u2190", "Earlier", 1, -0.4), tool("\u2192", "Later", 1, 0.4), tool("All", "Show all", 1e9, 0)),
                 place, legend(entries), readout,
                 el("div", {class: "tools"}, el("label", {}, "Memory of ", chosen)), memory_place,
                 legend([{name: "capacity", rule: "rule"}]));
}
