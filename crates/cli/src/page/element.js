// SPDX-License-Identifier: MIT OR Apache-2.0
// The panel of an element: its handlers, with their values.

import * as api from "./api.js";
import { denied, html, setText, whole } from "./text.js";

/** The time between two readings of the handlers, in milliseconds. */
const INTERVAL = 2000;
/** The kinds of values that change while the configuration stays the same. */
const CHANGES = ["counter", "gauge", "rate", "seconds", "flag", "table"];
/** Handlers that the panel shows in its head. */
const HEAD = ["class", "config", "handlers", "name", "ports"];

export class Details {
  constructor(node, router) {
    this.node = node;
    this.router = router;
    this.name = null;
    setInterval(() => this.read(true), INTERVAL);
  }

  /** Says how to choose an element. */
  empty() {
    this.name = null;
    this.node.replaceChildren(html("p", { class: "none" }, "Choose an element to see its handlers."));
  }

  /** Shows an element. */
  async show(name) {
    this.name = name;
    try {
      const element = await api.element(name);
      if (this.name !== name) return;
      this.fill(element);
      await this.read(false);
    } catch (error) {
      if (this.name !== name) return;
      this.node.replaceChildren(html("h2", {}, name), html("p", { class: "error", role: "alert" }, error.message));
    }
  }

  /** Reads the element again, after a hot swap. */
  refresh() {
    if (this.name !== null) this.show(this.name);
  }

  fill(element) {
    const { router } = this;
    const may = router()?.authorised;
    this.rows = [];
    const rows = element.handlers.filter((h) => !HEAD.includes(h.name)).map((handler) => this.row(handler, may));
    const config = html("pre", { class: "config" }, element.configuration || "(no arguments)");
    const ports = html("pre", { class: "config" }, element.ports.trim());
    this.said = html("p", { class: "said", role: "status" });
    const writes = element.handlers.some((h) => h.writable);
    const parts = [
      html("header", {}, html("h2", {}, element.name), html("button", { class: "close", "aria-label": "Close", onclick: () => this.empty() }, "×")),
      html("p", { class: "class" }, element.class),
      element.doc ? html("p", { class: "doc" }, element.doc) : null,
      config,
      html("table", { class: "handlers" }, html("caption", { class: "hidden" }, `Handlers of ${element.name}`),
        html("thead", { class: "hidden" }, html("tr", {}, html("th", { scope: "col" }, "Handler"), html("th", { scope: "col" }, "Value"))),
        html("tbody", {}, ...rows)),
      this.said,
      writes && !may ? html("p", { class: "none" }, denied(router(), "write handlers")) : null,
      html("details", {}, html("summary", {}, "Ports"), ports),
    ];
    this.node.replaceChildren(...parts.filter((part) => part !== null));
  }

  row(handler, may) {
    const value = html("output", { class: "value" });
    const cell = html("td", {});
    const row = { handler, value };
    if (handler.readable) cell.append(value);
    if (handler.writable && may) cell.append(this.control(row));
    if (handler.readable && !this.isRead(handler)) {
      cell.append(html("button", { class: "small", onclick: () => this.readOne(row) }, "Read"));
    }
    this.rows.push(row);
    const unit = handler.unit ? html("span", { class: "unit" }, ` ${handler.unit}`) : null;
    return html("tr", { title: handler.doc ?? "" }, html("th", { scope: "row" }, handler.name, unit), cell);
  }

  /** Whether a handler is read without being asked for. */
  isRead(handler) {
    return handler.readable && !handler.parameters && !handler.expensive && !handler.uncommon;
  }

  /** What writes a handler. */
  control(row) {
    const { handler } = row;
    const label = `${handler.name}, new value`;
    if (handler.button) return html("button", { class: "small", onclick: () => this.write(row, "") }, "Call");
    if (handler.checkbox) {
      row.box = html("input", { type: "checkbox", "aria-label": handler.name, onchange: (event) => this.write(row, String(event.target.checked)) });
      return row.box;
    }
    const input = html("input", { type: "text", "aria-label": label, placeholder: "new value", spellcheck: "false", autocomplete: "off" });
    const send = (event) => {
      event.preventDefault();
      this.write(row, input.value);
    };
    return html("form", { onsubmit: send }, input, html("button", { class: "small" }, "Write"));
  }

  async write(row, value) {
    const { name } = this;
    try {
      const { answer } = await api.write(name, row.handler.name, value);
      this.say(answer || `${row.handler.name} was written.`);
    } catch (error) {
      this.say(error.message, true);
    }
    await this.read(false);
  }

  say(text, bad = false) {
    setText(this.said, text);
    this.said.classList.toggle("error", bad);
  }

  async readOne(row) {
    const { name } = this;
    try {
      const { value, text } = await api.read(name, row.handler.name);
      if (this.name !== name) return;
      const shown = typeof value === "number" && Number.isInteger(value) && value >= 0 ? whole(value) : text.trimEnd();
      setText(row.value, shown === "" ? "(empty)" : shown);
      row.value.classList.toggle("long", shown.includes("\n") || shown.length > 40);
      if (row.box && document.activeElement !== row.box) row.box.checked = value === true;
    } catch (error) {
      setText(row.value, error.message);
    }
  }

  /** Reads the handlers, or only those that change by themselves. */
  async read(changing) {
    if (this.name === null || !this.rows || document.hidden || (changing && this.reading)) return;
    this.reading = true;
    try {
      const wanted = (row) => this.isRead(row.handler) && (!changing || CHANGES.includes(row.handler.kind));
      for (const row of this.rows.filter(wanted)) await this.readOne(row);
    } finally {
      this.reading = false;
    }
  }
}
