// SPDX-License-Identifier: MIT OR Apache-2.0
// The view Configuration: a text editor that shows diagnostics while one types, what a hot swap would do, and swaps.

import * as api from "./api.js";
import { denied, html, setText } from "./text.js";

/** The pause in typing after which the text is checked, in milliseconds. */
const PAUSE = 300;
/** Texts above this size are not coloured. */
const COLOURED = 200_000;
/** The beginnings of lines of a plan, and what they mean. */
const CHANGES = { "+": ["added", "added"], "-": ["removed", "removed"], "~": ["changed", "changed"], "=": ["moves", "state moves"], "!": ["lost", "state may be lost"] };

const TOKENS = /(\/\/[^\n]*|\/\*[^]*?(?:\*\/|$))|("(?:\\.|[^"\\])*"?)|\b(elementclass|require|define|input|output)\b|(->|::|=>)|(\$\w+|\$\{\w+\})|\b([A-Z]\w*)\b(?!\s*::)/g;
const KINDS = ["comment", "string", "keyword", "arrow", "variable", "class"];

/** Divides a text into coloured pieces: start, end, kind. */
function coloured(text) {
  if (text.length > COLOURED) return [];
  return [...text.matchAll(TOKENS)].map((m) => [m.index, m.index + m[0].length, KINDS[m.slice(1).findIndex((g) => g !== undefined)]]);
}

export class Editor {
  constructor(node, router, swapped) {
    this.router = router;
    this.whenSwapped = swapped;
    this.marks = [];
    this.text = html("textarea", { id: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", "aria-describedby": "summary", "aria-label": "Configuration" });
    this.paint = html("pre", { class: "paint", "aria-hidden": "true" });
    this.lines = html("pre", { class: "gutter", "aria-hidden": "true" });
    this.summary = html("p", { id: "summary", role: "status" }, "");
    this.list = html("ol", { class: "diagnostics", "aria-label": "Diagnostics" });
    this.plan = html("ul", { class: "plan", "aria-label": "What a swap would do" });
    this.said = html("p", { class: "said", role: "status" });
    this.swap = html("button", { class: "main", id: "swap", disabled: true, "aria-keyshortcuts": "Control+Enter", onclick: () => this.replace() }, "Swap");
    this.revert = html("button", { id: "revert", onclick: () => this.load() }, "Revert");
    node.append(
      html("div", { class: "editor" }, this.lines, html("div", { class: "pages" }, this.paint, this.text)),
      html("aside", { class: "side", "aria-label": "Changes" },
        html("div", { class: "actions" }, this.swap, this.revert), this.said,
        html("h2", {}, "Diagnostics"), this.summary, this.list,
        html("h2", {}, "What a swap would do"), this.plan),
    );
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("scroll", () => this.scrolled());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.replace();
      }
    });
  }

  /** The view is shown: reads the configuration, unless there are changes in it. */
  open() {
    if (this.saved === undefined || this.text.value === this.saved) this.load();
  }
  /** The router has another configuration now. */
  swapped() {
    if (this.saved !== undefined && this.text.value === this.saved) this.load();
  }

  async load() {
    try {
      const { configuration } = await api.configuration();
      this.saved = configuration;
      this.text.value = configuration;
      // The browser may change line ends.
      this.saved = this.text.value;
      this.typed();
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /** Why the configuration cannot be changed, or null. */
  closed() {
    const router = this.router();
    if (!router?.authorised) return denied(router, "change the configuration");
    if (!router.reconfigurable) return "This router does not allow reconfiguration; castanet run -R starts one that does.";
    return null;
  }

  /** The text has changed. */
  typed() {
    this.marks = [];
    this.draw();
    this.swap.disabled = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    const closed = this.closed();
    this.text.readOnly = closed !== null && !this.router()?.authorised;
    this.revert.hidden = this.text.readOnly;
    this.swap.hidden = closed !== null;
    if (this.text.readOnly) {
      setText(this.summary, closed);
      return;
    }
    setText(this.summary, "Checking…");
    this.timer = setTimeout(() => this.check(), PAUSE);
  }

  async check() {
    this.abort = new AbortController();
    const { signal } = this.abort;
    const text = this.text.value;
    try {
      const found = await api.check(text, signal);
      this.diagnose(found, text);
      if (found.errors > 0) this.planned([], "There is no plan while there are errors.");
      else if (this.closed() !== null) this.planned([], this.closed());
      else if (text === this.saved) this.planned([], "The text is that of the running router.");
      else {
        const { changes } = await api.plan(text, signal);
        this.planned(changes, "Nothing would change.");
        this.swap.disabled = false;
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      this.planned([], error.message);
    }
  }

  /** Shows diagnostics, as a list and in the text. */
  diagnose({ elements, errors, diagnostics, more }, text) {
    const warnings = diagnostics.filter((d) => d.level === "warning").length;
    const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
    setText(this.summary, errors + warnings === 0 ? `${count(elements, "element")}, no errors.` : `${count(errors, "error")}, ${count(warnings, "warning")}.`);
    const place = places(text);
    this.marks = [];
    const items = diagnostics.map((d) => {
      const span = d.spans.find((s) => s.is_primary && s.file_name === "config") ?? null;
      if (span) this.marks.push([place(span.byte_start), Math.max(place(span.byte_end), place(span.byte_start) + 1), d.level]);
      const notes = d.children.map((c) => html("p", { class: c.level }, c.level === "help" ? `Help: ${c.message}` : c.message));
      const go = () => this.go(place(span.byte_start), place(span.byte_end));
      const head = html("button", { class: "link", disabled: !span, onclick: go }, html("b", {}, `${d.level}`), span ? ` line ${span.line_start}: ` : ": ", d.message);
      return html("li", { class: d.level }, head, ...notes);
    });
    if (more) items.push(html("li", {}, `${more} more are not listed.`));
    this.list.replaceChildren(...items);
    this.draw();
  }

  /** Shows the changes of a swap. */
  planned(changes, none) {
    const item = (line) => {
      const [kind, word] = CHANGES[line[0]] ?? ["", ""];
      return html("li", { class: kind }, word ? html("b", {}, word) : "", word ? ` ${line.slice(1).trim()}` : line);
    };
    this.plan.replaceChildren(...(changes.length ? changes.map(item) : [html("li", { class: "none" }, none)]));
  }

  async replace() {
    if (this.swap.disabled || this.swap.hidden) return;
    this.swap.disabled = true;
    const text = this.text.value;
    try {
      const { warnings } = await api.swap(text);
      this.saved = text;
      this.say(warnings || "The router runs the new configuration.");
      this.planned([], "The text is that of the running router.");
      await this.whenSwapped();
    } catch (error) {
      this.say(error.message, true);
      this.swap.disabled = false;
    }
  }

  say(text, bad = false) {
    setText(this.said, text);
    this.said.classList.toggle("error", bad);
  }

  go(start, end) {
    this.text.focus();
    this.text.setSelectionRange(start, end);
    const line = this.text.value.slice(0, start).split("\n").length;
    this.text.scrollTop = Math.max(0, (line - 6) * 20);
  }

  /** Colours the text, and marks the diagnostics in it. */
  draw() {
    const text = this.text.value;
    const cuts = [...coloured(text).map((t) => [...t, "token"]), ...this.marks.map((m) => [...m, "mark"])];
    const borders = [...new Set([0, text.length, ...cuts.flatMap((c) => [c[0], c[1]])])].filter((b) => b <= text.length).sort((a, b) => a - b);
    const starts = Map.groupBy(cuts, (c) => c[0]);
    let active = [];
    const pieces = [];
    for (const [i, from] of borders.entries()) {
      active = active.filter((c) => c[1] > from).concat(starts.get(from) ?? []);
      const to = borders[i + 1];
      if (to === undefined) break;
      const piece = text.slice(from, to);
      pieces.push(active.length ? html("span", { class: active.map((c) => `${c[3]} ${c[2]}`).join(" ") }, piece) : piece);
    }
    this.paint.replaceChildren(...pieces, "\n");
    setText(this.lines, Array.from({ length: text.split("\n").length }, (_, i) => i + 1).join("\n"));
    this.scrolled();
  }

  scrolled() {
    this.paint.style.transform = `translate(${-this.text.scrollLeft}px, ${-this.text.scrollTop}px)`;
    this.lines.style.transform = `translateY(${-this.text.scrollTop}px)`;
  }
}

/** Returns a function from bytes of the UTF-8 text to positions in it. */
function places(text) {
  if (/^[\x00-\x7f]*$/.test(text)) return (byte) => byte;
  const map = [];
  const encoder = new TextEncoder();
  let at = 0;
  for (const c of text) {
    for (let i = encoder.encode(c).length; i > 0; i -= 1) map.push(at);
    at += c.length;
  }
  map.push(at);
  return (byte) => map[Math.min(byte, map.length - 1)];
}
