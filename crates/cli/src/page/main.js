// SPDX-License-Identifier: MIT OR Apache-2.0
// The page: views, the state of the router, and the events that update all views.

import * as api from "./api.js";
import { Details } from "./element.js";
import { Editor } from "./editor.js";
import { GraphView } from "./graph.js";
import { Tables } from "./tables.js";
import { Trace } from "./trace.js";
import { html, percent, rate, setText } from "./text.js";

const byId = (id) => document.getElementById(id);

/** What all views share. */
const page = { router: null, graph: null, reading: null };

const details = new Details(byId("details"), () => page.router);
const show = (name) => {
  select("graph");
  view.select(name);
  details.show(name);
};
const view = new GraphView(byId("sheet"), { open: show, fold: (folded) => draw(folded) });
const tables = new Tables(byId("view-tables"), show);
const editor = new Editor(byId("view-configuration"), () => page.router, () => refresh());

const trace = new Trace(byId("trace"), { router: () => page.router, view, open: show });
byId("trace-packets").addEventListener("click", () => {
  const shown = trace.toggle();
  byId("trace-packets").setAttribute("aria-expanded", String(shown));
});

const VIEWS = ["graph", "tables", "configuration"];

/** Shows one of the views. */
function select(name) {
  for (const other of VIEWS) {
    const [tab, panel] = [byId(`tab-${other}`), byId(`view-${other}`)];
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    panel.hidden = other !== name;
  }
  if (name === "configuration") editor.open();
  if (name === "graph") view.shown();
  if (name === "tables" && page.reading) tables.update(page.graph, page.reading);
}

for (const [i, name] of VIEWS.entries()) {
  byId(`tab-${name}`).addEventListener("click", () => select(name));
  byId(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = VIEWS[(i + step + VIEWS.length) % VIEWS.length];
    select(next);
    byId(`tab-${next}`).focus();
  });
}

byId("zoom-in").addEventListener("click", () => view.zoomBy(1.25));
byId("zoom-out").addEventListener("click", () => view.zoomBy(0.8));
byId("zoom-fit").addEventListener("click", () => view.fit());
byId("fold-all").addEventListener("click", () => draw([...page.graph.compounds]));
byId("unfold-all").addEventListener("click", () => draw([]));
byId("find").addEventListener("change", (event) => {
  const name = event.target.value;
  if (page.graph?.elements.some((e) => e.name === name)) {
    show(name);
    view.reveal(name);
  }
});

/** Says how the router is. */
function state(kind, text) {
  const node = byId("state");
  node.dataset.kind = kind;
  setText(node, text);
}

/** Draws the graph with these compounds folded. */
async function draw(folded) {
  page.graph = await api.graph(folded);
  view.draw(page.graph, folded);
  byId("names").replaceChildren(...page.graph.elements.map((e) => html("option", { value: e.name }, e.class)));
  const compounds = page.graph.compounds.length > 0;
  byId("fold-all").hidden = !compounds;
  byId("unfold-all").hidden = !compounds;
  setText(byId("figure-elements"), String(page.graph.elements.length));
  tables.forget();
  if (page.reading?.identity === page.graph.identity) update(page.reading);
}

/** Reads everything again, after a hot swap. */
async function refresh() {
  page.router = await api.router();
  const rights = !page.router.writable ? "read-only" : page.router.authorised ? "read and write" : "read; the link has the token";
  setText(byId("figure-rights"), rights);
  await draw(page.graph ? view.folded.filter((f) => page.graph.compounds.includes(f)) : []);
  details.refresh();
  trace.refresh();
}

function update(reading) {
  view.update(page.graph, reading);
  if (!byId("view-tables").hidden) tables.update(page.graph, reading);
  const dropped = reading.drops.reduce((sum, d) => sum + (d.rate ?? 0), 0);
  const figure = byId("figure-drops");
  setText(figure, reading.seconds === null ? "–" : rate(dropped));
  figure.classList.toggle("bad", dropped > 0);
  const loads = reading.workers.map((w) => w.work);
  setText(byId("figure-load"), loads.length ? percent(Math.max(...loads)) : "–");
}

let refreshing = false;

async function reading(now) {
  page.reading = now;
  if (now.identity !== page.graph?.identity) {
    if (refreshing) return;
    refreshing = true;
    try {
      await refresh();
      editor.swapped();
    } finally {
      refreshing = false;
    }
  } else update(now);
  state("live", "Live");
}

async function start() {
  try {
    await refresh();
  } catch (error) {
    state("trouble", error.message);
  }
  api.watch({
    reading: (now) => reading(now).catch((error) => state("trouble", error.message)),
    trouble: (text) => state("trouble", text),
    end: () => state("ended", "The router has ended"),
  });
}

details.empty();
start();
