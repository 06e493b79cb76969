// The what-if page: every change of a control asks the program, which runs in workers, and draws its reply as pages of
// replies do.
/* global el, section, folded, tip, follow_tips, sortable, column, copied, size_columns, recompute_text, verdict_line, verdict_cell,
   headline_cards, memory_section, time_section, tensors_section, schedule_section, layer_section, ladder_section, frontier_section, routing_section,
   alternatives_section, notes_section, plan_page, seconds_text, percent, gib */
import {address_of, as_typed, changed_state, commanded_model, estimate_command, is_model, search_command, START, state_of, state_of_command} from "./command.js";
import {controls} from "./controls.js";
import {curve_sections, payoff_section} from "./curves.js";
import {compiled} from "./engine.js";
import {Runner} from "./runner.js";

const AT_REST = 250;  // milliseconds without a change, after which the rest of the answer is asked for

const place = (id) => document.getElementById(id);
const lists = {models: [], systems: [], software: []};
let state = state_of(location.hash);
let reply = null;
let runners = null;  // {quick, rest, search}

function errors_of(stderr) {
  const lines = stderr.split("\n").filter((line) => line.startsWith("headroom: ") && !/^headroom: (assumed|note|warning)/.test(line));
  return lines.filter((line) => !line.includes(" --help'")).map((line) => line.replace(/^headroom: (error: )?/, ""));
}

// Puts sections in a place, with those open that were.
function put(id, ...parts) {
  const at = place(id);
  const open = new Set([...at.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  at.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  for (const details of at.querySelectorAll("details")) if (open.has(details.firstChild.textContent)) details.open = true;
  at.classList.remove("stale");
}

function show_refusal(lines) {
  const verdict = place("verdict");
  verdict.className = "verdict refused";
  verdict.replaceChildren(el("p", {}, "Not possible"), ...lines.map((line) => el("p", {class: "small"}, line)));
  for (const id of ["cards", "answer", "details", "curves", "notes"]) place(id).classList.add("stale");
}

function show_verdict(answer) {
  const verdict = place("verdict");
  verdict.className = `verdict ${answer.memory.verdict}`;
  verdict.textContent = verdict_line(answer.memory, answer.infeasible).textContent;
}

function show_quick(answer) {
  const {memory, views} = answer;
  show_verdict(answer);
  put("cards", headline_cards({...answer, strategy: null}));  // the controls show it
  put("answer", memory_section(memory), time_section(answer.time), views.schedule ? schedule_section(views.schedule, memory) : null,
      layer_section(views.layer));
}

function show_rest(answer, asked) {
  const {memory, views, strategy} = answer;
  put("details", alternatives_section(answer.alternatives, memory, answer.time), tensors_section(memory.tensors, memory),
      routing_section(answer.routing), ladder_section(views?.ladder, memory, strategy), frontier_section(views, answer),
      payoff_section(answer, strategy.sequence_parallel));
  put("notes", section("The same on a command line", null, copied(as_typed(estimate_command(asked)))), notes_section(answer));
}

// The newest state that is not answered yet. One question runs at a time, so that a slider that is dragged is answered as
// fast as the program can.
let newest = null;
let answering = false;
let resting = null;

async function answer_newest() {
  if (answering) return;
  answering = true;
  while (newest) {
    const {state: asked, at} = newest;
    newest = null;
    const estimate = await runners.quick.run(estimate_command(asked, "--no-suggestions", "--views=quick", "--format", "json"));
    if (newest) continue;
    if (estimate.status === 0 || estimate.status === 3) {
      reply = JSON.parse(estimate.stdout);
      show_quick(reply);
    } else {
      show_refusal(errors_of(estimate.stderr));
    }
    inputs.update(state, reply);
    requestAnimationFrame(() => {
      const took = performance.now() - at;
      place("took").textContent = `Answered in ${took.toFixed(0)} ms.`;
      place("took").dataset.milliseconds = took.toFixed(1);
    });
    if (estimate.status === 0 || estimate.status === 3) resting = setTimeout(() => answer_rest(asked), AT_REST);
  }
  answering = false;
}

async function answer_rest(asked) {
  const ask = async (command) => {
    const answer = await runners.rest.run(command);
    return answer && (answer.status === 0 || answer.status === 3) ? JSON.parse(answer.stdout) : null;
  };
  const whole = await ask(estimate_command(asked, "--views", "--format", "json"));
  if (asked !== state || !whole) return;
  show_rest(whole, asked);
  const figures = await curve_sections(ask, asked, whole);
  if (asked !== state) return;
  put("curves", figures);
  place("curves").dataset.of = address_of(asked);
}

function changed() {
  clearTimeout(resting);
  runners.rest.cancel();
  for (const id of ["details", "curves", "notes"]) place(id).classList.add("stale");
  newest = {state, at: performance.now()};
  answer_newest();
}

function take(fields) {
  state = changed_state(state, fields);
  history.replaceState(null, "", address_of(state));
  changed();
}

// A command says everything, a launch file its layout, a model's file only the model.
function take_text(text) {
  if (!text.trim()) return;
  const model = commanded_model(text);
  if (model) {
    state = state_of_command(text, {model});
    return take({});
  }
  if (is_model(text)) return take({text, model: undefined});
  state = {system: state.system};
  take({text});
}

function back() {
  state = {...START};
  take({});
}

function searched_section(found) {
  const {plans} = found;
  if (!plans.length) return plan_page(found);
  const use = (plan) => {
    state = state_of_command(plan.command, state);
    take({});
    place("verdict").scrollIntoView({block: "nearest"});
  };
  const columns = [...size_columns(plans), column("recompute", (plan) => recompute_text(plan.strategy.recompute), null, true),
                   column("iteration", (plan) => plan.time?.iteration_seconds, seconds_text), column("MFU", (plan) => plan.throughput?.mfu, percent),
                   column("peak", (plan) => plan.memory.peak_bytes, gib),
                   {name: "verdict", text: true, value: (plan) => plan.memory.verdict, cell: (plan) => verdict_cell(plan.memory.verdict)}];
  return section(`The fastest of ${found.evaluated.toLocaleString("en-US")} strategies`, "Choose a row, by a click or with Enter, to take it over.",
                 sortable(columns, plans, {choose: use, caption: "plans"}));
}

// What the program writes over and over on one line of a terminal.
function last_line(text) { return text.replaceAll(/\x1b\[[\d;]*[A-Za-z]/g, "").split("\r").filter((line) => line.trim()).at(-1) ?? ""; }

async function search(fast) {
  runners.search.cancel();
  const command = search_command(state, ...(fast ? ["--fast"] : []), "--format", "json");
  const told = el("span", {}, "Searching ...");
  const cancel = el("button", {type: "button", onclick: () => {
    runners.search.cancel();
    put("search");
  }}, "Cancel");
  put("search", section("Search", null, el("div", {class: "tools progress", role: "status"}, el("i", {"aria-hidden": "true"}), told, cancel)));
  const answer = await runners.search.run(command, (text) => { told.textContent = last_line(text) || told.textContent; });
  if (!answer) return;
  if (answer.status === 0 || answer.status === 3) put("search", searched_section(JSON.parse(answer.stdout)));
  else put("search", section("Search", null, el("div", {class: "verdict refused"}, errors_of(answer.stderr).map((line) => el("p", {}, line)))));
}

async function share(event) {
  const button = event.target;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Link copied";
  } catch {
    button.textContent = "The link is the page's address";
  }
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

// First fields of the rows of a list, without its heading.
async function list(runner, name, what) {
  const {stdout} = await runner.run({args: ["list", name, "--format", "csv"]});
  lists[name] = stdout.trim().split("\n").slice(1).map((row) => row.split(",")).filter(([first]) => first)
      .map((cells) => ({name: cells[0], text: what(cells)}));
}

const inputs = controls(lists, {change: take, paste: take_text, back});

async function start() {
  place("ask").append(...inputs.asked);
  place("controls").append(el("div", {class: "buttons"},
      el("button", {type: "button", class: "first", onclick: () => search(true)}, "Find the fastest"),
      el("button", {type: "button", onclick: () => search(false)}, "Search everything"),
      el("button", {type: "button", onclick: share}, "Copy link")), ...inputs.form);
  place("controls").addEventListener("submit", (event) => event.preventDefault());
  inputs.update(state, null);
  document.body.append(tip);
  follow_tips(place("page"));
  const module = await compiled(new URL("headroom.wasm", import.meta.url));
  runners = Object.fromEntries(["quick", "rest", "search"].map((name) => [name, new Runner(module)]));
  addEventListener("hashchange", () => {
    state = state_of(location.hash);
    changed();
  });
  newest = {state, at: performance.now()};
  await answer_newest();
  const lister = new Runner(module);
  await Promise.all([
    list(lister, "models", ([name, parameters]) => `${name} (${(parameters / 1e9).toPrecision(3)}B)`),
    list(lister, "systems", ([name, gpu]) => `${name} (${gpu})`), list(lister, "software", ([name]) => name)]);
  lister.cancel();
  inputs.update(state, reply);
  document.body.dataset.ready = "yes";
}

start().catch((error) => show_refusal([`The program could not be loaded: ${error.message}. Serve the folder over HTTP: scripts/what-if --serve.`]));
