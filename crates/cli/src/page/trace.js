// SPDX-License-Identifier: MIT OR Apache-2.0
// The panel Trace: follows packets through the router, and goes through the way of one packet step by step.

import * as api from "./api.js";
import { denied, html, setText } from "./text.js";

/** The time between two readings of a trace, in milliseconds. */
const INTERVAL = 400;
/** The bytes in a line of the dump. */
const LINE = 12;

/** Formats nanoseconds. */
function duration(ns) {
  if (ns < 1e4) return `${ns} ns`;
  if (ns < 1e7) return `${(ns / 1e3).toFixed(1)} us`;
  return ns < 1e10 ? `${(ns / 1e6).toFixed(1)} ms` : `${(ns / 1e9).toFixed(2)} s`;
}

/** The bytes of a step, with those marked that differ from the step `before`. */
function dump(step, before) {
  const pairs = (text) => text?.match(/../g) ?? [];
  const [now, old] = [pairs(step.data), pairs(before?.data)];
  // Bytes that were taken off or put in front move the rest.
  const shift = step.changes.reduce((n, c) => n + (c.stripped ?? 0) - (c.prepended ?? 0), 0);
  // The data of a long packet is cut off. Bytes that were cut off before cannot be compared.
  const known = (i) => i < old.length || i >= before.length;
  const differs = (i) => before !== undefined && known(i + shift) && old[i + shift] !== now[i];
  const nodes = now.flatMap((byte, i) => {
    const gap = i === 0 ? [] : [i % LINE === 0 ? "\n" : " "];
    return [...gap, differs(i) ? html("mark", {}, byte) : byte];
  });
  return html("pre", { class: "bytes", "aria-label": "Bytes of the packet" }, ...nodes);
}

/** Whether a step dropped the packet. */
const wasDropped = (packet) => packet.steps.some((s) => s.event === "dropped");

export class Trace {
  constructor(node, { router, view, open }) {
    this.node = node;
    this.router = router;
    this.view = view;
    this.open = open;
    /** The name of the running trace, or null. */
    this.name = null;
    this.packets = [];
    this.packet = 0;
    this.at = 0;
  }

  /** Shows the panel or hides it. Returns whether it is shown. */
  toggle() {
    this.node.hidden = !this.node.hidden;
    if (this.node.hidden) {
      this.end();
      this.view.way([]);
      return false;
    }
    this.fill();
    this.filter?.focus();
    return true;
  }

  /** Builds the panel again if the rights of this page have changed. */
  refresh() {
    if (!this.node.hidden && Boolean(this.filter) !== Boolean(this.router()?.authorised)) this.fill();
  }

  fill() {
    const head = html("header", {}, html("h2", {}, "Trace"));
    this.filter = null;
    if (!this.router()?.authorised) {
      this.node.replaceChildren(head, html("p", { class: "none" }, denied(this.router(), "trace packets")));
      return;
    }
    this.filter = html("input", { type: "text", "aria-label": "Which packets: an expression of IPFilter", placeholder: "all packets, or: icmp && dst 10.0.0.1", spellcheck: "false", autocomplete: "off" });
    this.count = html("input", { type: "number", min: 1, max: 100, value: 10, "aria-label": "Number of packets" });
    this.button = html("button", { class: "main" }, "Follow");
    const send = (event) => {
      event.preventDefault();
      if (this.name) this.end();
      else this.begin();
    };
    this.said = html("p", { class: "said", role: "status" });
    this.list = html("ol", { class: "packets", "aria-label": "Packets", hidden: true, onkeydown: (event) => this.key(event, "packet") });
    this.walk = html("div", { class: "walk", hidden: true },
      html("button", { class: "small", "aria-label": "Step back", onclick: () => this.step(this.at - 1) }, "◀"),
      html("output", {}),
      html("button", { class: "small", "aria-label": "Step forward", onclick: () => this.step(this.at + 1) }, "▶"));
    this.steps = html("ol", { class: "steps", "aria-label": "Steps of the packet", onkeydown: (event) => this.key(event, "step") });
    this.bytes = html("div", {});
    this.node.replaceChildren(head, html("form", { onsubmit: send }, html("label", {}, this.filter), html("label", { class: "count" }, this.count), this.button), this.said, this.list, this.walk, this.steps, this.bytes);
    this.show();
  }

  say(text, bad = false) {
    setText(this.said, text);
    this.said.classList.toggle("error", bad);
  }

  async begin() {
    this.button.disabled = true;
    try {
      const { trace } = await api.beginTrace(this.filter.value, Number(this.count.value));
      // The panel may have been hidden meanwhile.
      if (this.node.hidden) {
        api.endTrace(trace).catch(() => {});
        return;
      }
      this.name = trace;
      [this.packets, this.packet, this.at] = [[], 0, 0];
      this.show();
      this.say("Waiting for packets.");
      setText(this.button, "Stop");
      this.read(trace);
    } catch (error) {
      this.say(error.message, true);
    } finally {
      this.button.disabled = false;
    }
  }

  /** Reads the trace until it is over. */
  async read(name) {
    try {
      const trace = await api.trace(name);
      if (this.name !== name) return;
      this.packets = trace.packets;
      this.show();
      const lost = trace.lost > 0 ? ` ${trace.lost} steps were lost.` : "";
      const count = `${trace.chosen} of ${trace.wanted} packets followed.`;
      if (trace.chosen > 0) this.say(`${count}${lost}`);
      if (trace.over) this.end();
      else setTimeout(() => this.read(name), INTERVAL);
    } catch (error) {
      if (this.name !== name) return;
      this.say(error.message, true);
      this.end();
    }
  }

  /** Ends the trace. What it has shown stays. */
  end() {
    if (!this.name) return;
    // If the router has gone, nothing is left to end.
    api.endTrace(this.name).catch(() => {});
    this.name = null;
    setText(this.button, "Follow");
    if (this.packets.length === 0 && !this.said.classList.contains("error")) this.say("No packet that matches has entered the router.");
  }

  /** Shows the packets, and the steps of the chosen one. Only what has changed is made again. */
  show() {
    const { packets } = this;
    this.list.hidden = packets.length === 0;
    this.walk.hidden = packets.length === 0;
    packets.forEach((packet, i) => {
      const key = `${packet.packet} ${packet.steps.length} ${packet.is_whole}`;
      const old = this.list.children[i];
      if (old?.dataset.key === key) return;
      const more = packet.is_whole ? (wasDropped(packet) ? ", dropped" : "") : ", in the router";
      const button = html("button", { tabindex: -1, onclick: () => this.choose(i) }, `${packet.packet}: ${packet.summary}${more}`);
      const row = html("li", { class: wasDropped(packet) ? "lost" : "", "data-key": key }, button);
      if (old) old.replaceWith(row);
      else this.list.append(row);
    });
    while (this.list.children.length > packets.length) this.list.lastChild.remove();
    this.showSteps();
  }

  choose(i) {
    [this.packet, this.at] = [i, 0];
    this.showSteps();
  }

  showSteps() {
    const packet = this.packets[this.packet];
    mark(this.list, this.packet);
    const steps = packet?.steps ?? [];
    const key = `${packet?.packet} ${steps.length}`;
    if (this.steps.dataset.key !== key) {
      this.steps.dataset.key = key;
      const parts = steps.some((s) => s.part > 0);
      this.steps.replaceChildren(
        ...steps.map((s, i) => {
          const part = parts ? ` (part ${s.part})` : "";
          const button = html("button", { tabindex: -1, onclick: () => this.step(i), ondblclick: () => this.open(s.element) },
            html("small", {}, duration(s.time - steps[0].time)), html("b", {}, s.element), part, html("span", {}, s.text));
          return html("li", { class: s.event === "dropped" ? "lost" : "" }, button);
        }),
      );
    }
    this.step(Math.min(this.at, Math.max(steps.length - 1, 0)));
  }

  /** Goes to a step of the packet. */
  step(at) {
    const steps = this.packets[this.packet]?.steps ?? [];
    if (at < 0 || (at >= steps.length && steps.length > 0)) return;
    this.at = at;
    mark(this.steps, at);
    const step = steps[at];
    this.view.way(steps.slice(0, at + 1));
    const [back, place, on] = this.walk.children;
    back.disabled = at === 0;
    on.disabled = at + 1 >= steps.length;
    setText(place, step ? `Step ${at + 1} of ${steps.length}: ${step.element} ${step.text}` : "");
    const before = steps.slice(0, at).findLast((s) => s.data !== null && s.part === step.part);
    this.bytes.replaceChildren(...(step?.data ? [dump(step, before)] : []));
  }

  /** Arrow keys, Home and End move in the lists. */
  key(event, kind) {
    const [list, at] = kind === "step" ? [this.steps, this.at] : [this.list, this.packet];
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.children.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0 || to >= list.children.length) return;
    if (kind === "step") this.step(to);
    else this.choose(to);
    list.children[to].firstChild.focus();
  }
}

/** Makes one row of a list the current one, and the one that the Tab key reaches. */
function mark(list, at) {
  [...list.children].forEach((row, i) => {
    const button = row.firstChild;
    if (i === at) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    button.tabIndex = i === at ? 0 : -1;
  });
  list.children[at]?.scrollIntoView({ block: "nearest" });
}
