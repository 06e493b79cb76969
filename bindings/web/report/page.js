// Draws the reply that the page holds.

const PAGES = {estimate: estimate_page, plan: plan_page, compare: compare_page, frontier: frontier_page, sweep: sweep_page};

function saved_json(text) {
  const link = el("a", {href: "#", download: "reply.json"}, "Save the JSON of this page");
  link.addEventListener("click", () => {
    link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  });
  return link;
}

function what_if_link(address) {
  return address ? [" · ", el("a", {href: address}, "Change it in the browser")] : null;
}

function draw_page() {
  const text = document.getElementById("reply").textContent;
  const reply = JSON.parse(text);
  const place = document.getElementById("page");
  const {model, system, software, kind} = reply;
  const of = [system?.name, system?.device, software?.name].filter(Boolean).join(" · ");
  place.replaceChildren(
      el("h1", {}, model?.name ? `${model.name}: ${kind}` : kind), el("p", {class: "soft"}, of, what_if_link(place.dataset.whatIf)),
      ...[PAGES[reply.kind](reply)].flat(Infinity).filter((part) => part),
      el("p", {class: "soft"}, saved_json(text)));
  document.body.append(tip);
  follow_tips(place);
}

draw_page();
