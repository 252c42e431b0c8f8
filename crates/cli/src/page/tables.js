// SPDX-License-Identifier: MIT OR Apache-2.0
// The view Tables: all that the graph shows, as text.

import { html, percent, rate, setText, whole } from "./text.js";

/** A table whose rows are changed in place, so that a reader or a selection in it is not disturbed. */
class Table {
  constructor(title, heads, none) {
    this.body = html("tbody");
    this.none = html("p", { class: "none" }, none);
    const head = heads.map(([text, kind]) => html("th", { scope: "col", class: kind ?? "" }, text));
    this.heads = heads;
    this.table = html("table", {}, html("caption", { class: "hidden" }, title), html("thead", {}, html("tr", {}, ...head)), this.body);
    this.node = html("section", { class: "card" }, html("h2", {}, title), html("div", { class: "scroll" }, this.table), this.none);
    this.rows = [];
  }
  /** Shows rows of texts. A cell may be a function that makes a node; it is made again only if the key of the row changes. */
  update(rows) {
    this.none.hidden = rows.length > 0;
    this.table.hidden = rows.length === 0;
    while (this.rows.length > rows.length) this.rows.pop().row.remove();
    rows.forEach(({ key, cells, bad }, i) => {
      let known = this.rows[i];
      if (known?.key !== key) {
        const tds = cells.map((_, n) => html("td", { class: this.heads[n][1] ?? "" }));
        const row = html("tr", {}, ...tds);
        cells.forEach((cell, n) => typeof cell === "function" && tds[n].append(cell()));
        if (known) known.row.replaceWith(row);
        else this.body.append(row);
        known = this.rows[i] = { key, row, tds };
      }
      known.row.classList.toggle("bad", Boolean(bad));
      cells.forEach((cell, n) => typeof cell !== "function" && setText(known.tds[n], cell));
    });
  }
}

export class Tables {
  constructor(node, open) {
    this.open = open;
    this.drops = new Table("Drops", [["Element"], ["Class"], ["Reason"], ["Packets", "number"], ["Rate", "number"]], "No packets were dropped.");
    this.queues = new Table("Queues", [["Element"], ["Packets", "number"], ["Capacity", "number"], ["Full", "number"]], "There are no queues.");
    this.workers = new Table("Workers", [["Worker"], ["Work", "number"], ["Poll", "number"], ["Idle", "number"], ["Tasks", "number"]], "There are no workers.");
    this.connections = new Table("Connections", [["From"], ["Port", "number"], ["To"], ["Port", "number"], ["Kind"], ["Rate", "number"]], "There are no connections.");
    this.elements = new Table("Elements", [["Element"], ["Class"], ["Configuration", "wide"]], "There are no elements.");
    const all = [this.drops, this.queues, this.elements, this.connections, this.workers];
    node.append(...all.map((table) => table.node));
  }
  /** A button that shows an element. */
  link(name) {
    return () => html("button", { class: "link", onclick: () => this.open(name) }, name);
  }
  /** The graph has changed. */
  forget() {
    this.graph = null;
  }
  update(graph, reading) {
    if (this.graph !== graph) {
      this.graph = graph;
      this.elements.update(graph.elements.map((e) => ({ key: e.name, cells: [this.link(e.name), e.class, e.configuration] })));
    }
    this.drops.update(
      reading.drops.map((d) => ({
        key: `${d.element} ${d.reason}`,
        cells: [this.link(d.element), d.class, d.reason, whole(d.packets), rate(d.rate)],
        bad: d.rate > 0,
      })),
    );
    const full = (q) => (q.capacity > 0 ? percent(q.length / q.capacity) : "–");
    this.queues.update(
      reading.queues.map((q) => ({
        key: q.element,
        cells: [this.link(q.element), whole(q.length), whole(q.capacity), full(q)],
        bad: q.capacity > 0 && q.length >= q.capacity,
      })),
    );
    this.workers.update(
      reading.workers.map((w) => ({
        key: String(w.worker),
        cells: [String(w.worker), percent(w.work), percent(w.poll), percent(w.idle), String(w.tasks)],
      })),
    );
    this.connections.update(
      graph.connections.map((c, i) => ({
        key: `${c.from.element} ${c.from.port} ${c.to.element} ${c.to.port}`,
        cells: [this.link(c.from.element), String(c.from.port), this.link(c.to.element), String(c.to.port), c.kind, rate(reading.rates[i])],
      })),
    );
  }
}
