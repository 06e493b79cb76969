// Charts of uPlot in the colours of the page. A chart says nothing to a screen reader: each has a table beside it.

function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// As short as a tick of an axis can be.
function tick_seconds(seconds) { return `${Number(seconds.toPrecision(4))} s`; }
function tick_gib(bytes) { return `${Number((bytes / GIB).toPrecision(4))} GiB`; }

const GIB_STEPS = [0.01, 0.1, 1, 10, 100, 1000, 10000].flatMap((step) => [step, 2 * step, 5 * step]).map((step) => step * GIB);
const TICKS = new Map([[seconds_text, tick_seconds], [gib, tick_gib]]);

// `size`: absent: as wide as its ticks.
function axis(label, values, size) {
  const steps = values === tick_gib ? {incrs: GIB_STEPS} : {};
  const width = (plot, texts) => 16 + 7 * Math.max(0, ...(texts ?? []).map((text) => text.length));
  return {label, values: (plot, splits) => splits.map(values), stroke: () => css("--soft"), size: size ?? width,
          labelSize: label ? 24 : 0, ...steps,
          font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
          grid: {stroke: () => css("--line"), width: 1}, ticks: {stroke: () => css("--line"), width: 1}};
}

// A chart that is as wide as its place and is drawn anew where the colours or the width change.
function chart(options, data, height, label) {
  const place = el("div", {class: "chart", role: "img", "aria-label": label});
  let plot = null;
  place.draw = () => plot?.redraw();
  place.plot = () => plot;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (!width) return;
    if (plot) return plot.width === width ? undefined : plot.setSize({width, height});
    plot = new uPlot({width, height, ...options}, data, place);
    place.dispatchEvent(new Event("plotted"));
  }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot?.redraw());
  return place;
}

const SHAPES = ["circle", "square", "diamond"];

function draw_shape(context, shape, x, y, size) {
  context.beginPath();
  if (shape === "circle") context.arc(x, y, size, 0, 2 * Math.PI);
  else if (shape === "square") context.rect(x - size, y - size, 2 * size, 2 * size);
  else {
    context.moveTo(x, y - 1.3 * size);
    context.lineTo(x + 1.3 * size, y);
    context.lineTo(x, y + 1.3 * size);
    context.lineTo(x - 1.3 * size, y);
  }
  context.closePath();
}

// Points: {x, y, group, tip, big}. Groups: [{name, colour}]. `line`: an x to mark.
function scatter(points, groups, {x, y, format_x, format_y, line, label, height = 300, log = false}) {
  const sorted = [...points].sort((a, b) => a.x - b.x);
  const range = (low, high) => {
    const pad = (high - low || Math.abs(high) || 1) * 0.07;
    return [Math.max(0, low - pad), high + pad];
  };
  let near = null;
  const shown = chart({
    cursor: {drag: {x: true, y: true, uni: 20}, points: {show: false}},
    scales: {x: log ? {time: false, distr: 3, log: 2} : {time: false, range: (plot, low, high) => range(Math.min(low, line ?? low), Math.max(high, line ?? high))},
             y: {range: (plot, low, high) => range(low, high)}},
    axes: [axis(x, TICKS.get(format_x) ?? format_x, 46), axis(y, TICKS.get(format_y) ?? format_y)],
    series: [{}, {show: true, paths: () => null, points: {show: false}}],
    hooks: {
      draw: [(plot) => {
        const {ctx} = plot;
        const scale = devicePixelRatio;
        ctx.save();
        if (line !== undefined) {
          const at = plot.valToPos(line, "x", true);
          ctx.strokeStyle = css("--bad");
          ctx.setLineDash([6 * scale, 4 * scale]);
          ctx.lineWidth = 1.5 * scale;
          ctx.beginPath();
          ctx.moveTo(at, plot.bbox.top);
          ctx.lineTo(at, plot.bbox.top + plot.bbox.height);
          ctx.stroke();
          ctx.setLineDash([]);
        }
        for (const point of sorted) {
          draw_shape(ctx, SHAPES[point.group % SHAPES.length], plot.valToPos(point.x, "x", true),
                     plot.valToPos(point.y, "y", true), (point.big ? 7 : 4) * scale);
          ctx.fillStyle = css(`--c${groups[point.group].colour}`);
          ctx.fill();
          if (point.big) {
            ctx.strokeStyle = css("--text");
            ctx.lineWidth = 2 * scale;
            ctx.stroke();
          }
        }
        ctx.restore();
      }],
      setCursor: [(plot) => {
        const {left, top} = plot.cursor;
        near = null;
        if (left === null || left < 0) return hide_tip();
        let best = 24 ** 2;
        for (const point of sorted) {
          const away = (plot.valToPos(point.x, "x") - left) ** 2 + (plot.valToPos(point.y, "y") - top) ** 2;
          if (away < best) [best, near] = [away, point];
        }
        if (!near) return hide_tip();
        const place = plot.over.getBoundingClientRect();
        show_tip(near.tip, place.left + plot.valToPos(near.x, "x"), place.top + plot.valToPos(near.y, "y"));
      }],
    },
  }, [sorted.map((point) => point.x), sorted.map((point) => point.y)], height, label);
  return [shown, groups.length > 1 ? legend(groups) : null];
}

// Series: [{name, colour, values}] over the numbers `at`.
function lines(at, series, {x, y, format_x, format_y, label, height = 280, stepped = false, limit, width}) {
  const paths = stepped ? uPlot.paths.stepped({align: 1}) : undefined;
  return chart({
    cursor: {drag: {x: true, y: false}},
    scales: {x: {time: false}, y: {range: (plot, low, high) => [0, Math.max(high, limit ?? 0) * 1.06 || 1]}},
    axes: [axis(x, TICKS.get(format_x) ?? format_x, 46), axis(y, TICKS.get(format_y) ?? format_y, width)],
    series: [{}, ...series.map(({name, colour: index}) => ({
      label: name, stroke: () => css(`--c${index}`), width: 2, paths,
      points: {show: !stepped}, fill: undefined,
    }))],
    hooks: {
      draw: [(plot) => {
        if (limit === undefined) return;
        const {ctx} = plot;
        const at_limit = plot.valToPos(limit, "y", true);
        ctx.save();
        ctx.strokeStyle = css("--bad");
        ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
        ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(plot.bbox.left, at_limit);
        ctx.lineTo(plot.bbox.left + plot.bbox.width, at_limit);
        ctx.stroke();
        ctx.restore();
      }],
      setCursor: [(plot) => {
        const {idx, left} = plot.cursor;
        if (idx === null || idx === undefined || left < 0) return hide_tip();
        const place = plot.over.getBoundingClientRect();
        const texts = series.map(({name, values}) => values[idx] === null ? null : `${name}: ${format_y(values[idx])}`);
        show_tip([`${x}: ${format_x(at[idx])}`, ...texts.filter((text) => text)].join("\n"),
                 place.left + left, place.top + plot.cursor.top);
      }],
    },
  }, [at, ...series.map(({values}) => values)], height, label);
}
