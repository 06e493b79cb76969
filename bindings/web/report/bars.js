// Stacked bars, as elements: they are as wide as the page, and a phone shows their labels above them.

function colour(index) { return `var(--c${index})`; }

// Rows: {label, parts: [{name, value, colour, tip}], amount, marks: [{value, held, tip}]}.
function stacked_bars(rows, {most, format, limit, thin = false}) {
  const whole = most ?? Math.max(limit ?? 0, ...rows.map((row) => Math.max(
      row.parts.reduce((sum, part) => sum + part.value, 0), ...(row.marks ?? []).map((mark) => mark.value))));
  const width = (value) => `${(100 * value / (whole || 1)).toFixed(3)}%`;
  const grid = el("div", {class: rows.length > 20 ? "bars scrolled" : "bars", tabindex: rows.length > 20 ? 0 : null,
                          role: "list"});
  for (const row of rows) {
    let from = 0;
    const track = el("div", {class: thin || rows.length > 40 ? "track thin" : "track", role: "listitem",
                             "aria-label": `${row.label}: ${row.amount ?? ""}`});
    for (const part of row.parts) {
      const bar = el("div", {class: "part", "data-tip": part.tip ?? `${row.label}\n${part.name}: ${format(part.value)}`});
      bar.style.left = width(from);
      bar.style.width = width(part.value);
      bar.style.background = colour(part.colour);
      track.append(bar);
      from += part.value;
    }
    if (limit) track.append(mark(width(limit), `capacity: ${format(limit)}`, false));
    for (const {value, tip: text, held} of row.marks ?? []) track.append(mark(width(value), text, held));
    grid.append(el("div", {class: "label"}, row.label), track, el("div", {class: "amount"}, row.amount ?? ""));
  }
  return grid;
}

function mark(left, text, held) {
  const line = el("div", {class: held ? "mark held" : "mark", "data-tip": text});
  line.style.left = left;
  return line;
}

// Entries: {name, colour} or {name, rule: "rule" | "held"}.
function legend(entries) {
  return el("ul", {class: "legend"}, entries.map(({name, colour: index, rule}) => {
    const sign = el("i", {class: rule ?? null, "aria-hidden": "true"});
    if (index !== undefined) sign.style.background = colour(index);
    return el("li", {}, sign, name);
  }));
}

// Each name of the rows' parts once, in their order.
function legend_of(rows) {
  const seen = new Map();
  for (const row of rows) for (const part of row.parts) seen.set(part.name, part.colour);
  return [...seen].map(([name, index]) => ({name, colour: index}));
}
