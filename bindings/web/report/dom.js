// Elements of the page. Texts of a reply only ever become text nodes, so that a hostile name stays a name.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null));
  return node;
}

let sections = 0;

function section(title, lead, ...children) {
  const id = `part-${++sections}`;
  return el("section", {"aria-labelledby": id},
            el("h2", {id}, title), lead ? el("p", {class: "soft"}, lead) : null, children);
}

function folded(title, ...children) {
  return el("details", {}, el("summary", {}, title), children);
}

function card(name, value, note) {
  return el("div", {class: "card"}, el("div", {class: "name"}, name), el("div", {class: value.length > 12 ? "value long" : "value"}, value),
            note ? el("div", {class: "note"}, note) : null);
}

// One tooltip for the page, shown beside what the pointer or the focus is on.
const tip = el("div", {id: "tip", role: "tooltip"});

function show_tip(text, x, y) {
  tip.textContent = text;
  tip.style.display = "block";
  const {width, height} = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
}

function hide_tip() { tip.style.display = "none"; }

function follow_tips(root) {
  const text_at = (event) => event.target.closest?.("[data-tip]")?.dataset.tip;
  root.addEventListener("pointermove", (event) => {
    const text = text_at(event);
    if (text) show_tip(text, event.clientX, event.clientY);
    else hide_tip();
  });
  root.addEventListener("pointerleave", hide_tip);
  root.addEventListener("focusin", (event) => {
    const text = text_at(event);
    if (!text) return hide_tip();
    const place = event.target.getBoundingClientRect();
    show_tip(text, place.left, place.bottom - 16);
  });
  root.addEventListener("focusout", hide_tip);
}

// A table whose headings sort it. Columns: {name, text: left-aligned, value: row -> what sorts, cell: row -> what is
// shown}. `choose`, if given, is called with a row that is clicked.
function sortable(columns, rows, {choose, chosen, caption} = {}) {
  const body = el("tbody");
  const headings = [];
  let order = {column: null, down: false};
  const fill = () => {
    const {column, down} = order;
    const sorted = column === null ? rows : [...rows].sort((x, y) => {
      const [a, b] = [columns[column].value(x), columns[column].value(y)];
      if (a === b) return 0;
      if (a === undefined || a === null) return 1;
      if (b === undefined || b === null) return -1;
      return (a < b ? -1 : 1) * (down ? -1 : 1);
    });
    body.replaceChildren(...sorted.map((row) => {
      const line = el("tr", {class: row === chosen ? "chosen" : null},
                      columns.map((column) => el("td", {class: column.long ? "long" : column.text ? "text" : null},
                                                 column.cell(row))));
      if (choose) {
        const take = () => {
          chosen = row;
          for (const other of body.children) other.className = "";
          line.className = "chosen";
          choose(row);
        };
        line.style.cursor = "pointer";
        line.tabIndex = 0;
        line.addEventListener("click", take);
        line.addEventListener("keydown", (event) => { if (event.key === "Enter") take(); });
      }
      return line;
    }));
    headings.forEach((heading, i) => {
      if (i === column) heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
  };
  const row = el("tr", {}, columns.map((column, i) => {
    const button = el("button", {type: "button", onclick: () => {
      order = {column: i, down: order.column === i && !order.down};
      fill();
    }}, column.name);
    headings.push(el("th", {scope: "col", class: column.text || column.long ? "text" : null}, button));
    return headings.at(-1);
  }));
  fill();
  return el("div", {class: rows.length > 16 ? "wide tall" : "wide", tabindex: 0, role: "region", "aria-label": `Table of ${caption}`},
            el("table", {}, el("thead", {}, row), body));
}

// A column of a member: its text, and what sorts.
function column(name, value, format, text = false) {
  return {name, text, value, cell: (row) => {
    const of = value(row);
    return of === undefined || of === null ? "" : format ? format(of) : String(of);
  }};
}

function copied(text) {
  const button = el("button", {type: "button", class: "copy"}, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.nextElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected: press Ctrl-C";
    }
  });
  return [button, el("pre", {tabindex: 0}, text)];
}
