// SPDX-License-Identifier: MIT OR Apache-2.0
// The view Graph: the drawing that the server has laid out, with rates on connections, packets in queues, and drops.
//
// `draw` makes the nodes of a drawing once; `update` changes those whose value has changed. The way of a traced packet lies
// between the lines and the boxes.

import { number, rate, setAttribute, setText, svg } from "./text.js";

const LIMITS = [0.08, 3];
/** Below this zoom, texts are too small to be read, and only names are drawn. */
const SMALL = 0.55;

/** The width of a line with this many packets per second. */
const width = (n) => (n > 0 ? Math.min(1.5 + 0.62 * Math.log10(n + 1), 6) : 1.3);

/** A position, rounded as positions of the server may differ. */
const spot = (x, y) => `${Math.round(x)} ${Math.round(y)}`;

const port = (p, y, output) =>
  output
    ? svg("rect", { class: `port ${p.kind}`, x: p.x - 4, y: y - 4, width: 8, height: 8, rx: 1 })
    : svg("path", { class: `port ${p.kind}`, d: `M${p.x - 5} ${y - 1}h10l-5 8z` });

function marker(kind) {
  const head = svg("path", { class: `head ${kind}`, d: "M0 0L9 4.5L0 9z" });
  return svg("marker", { id: `arrow-${kind}`, viewBox: "0 0 9 9", refX: 8, refY: 4.5, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, head);
}

export class GraphView {
  constructor(sheet, { open, fold }) {
    this.sheet = sheet;
    this.open = open;
    this.fold = fold;
    this.folded = [];
    this.zoom = null;
    this.items = [];
    this.current = null;
    sheet.addEventListener("keydown", (event) => this.key(event));
    sheet.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    sheet.addEventListener("pointerdown", (event) => this.drag(event));
    sheet.addEventListener("scroll", () => {
      this.waits ??= requestAnimationFrame(() => {
        this.waits = null;
        this.refresh();
      });
    });
    new ResizeObserver(() => this.fits && this.fit()).observe(sheet);
  }

  /** Draws a graph with these compounds folded. */
  draw(graph, folded) {
    this.folded = folded;
    this.graph = graph;
    this.now = null;
    const { drawing } = graph;
    const held = this.current?.key;
    const hadFocus = this.sheet.contains(document.activeElement);
    this.items = [];
    this.lines = [];
    const [frames, lines, way, boxes, labels] = ["frames", "lines", "way", "boxes", "labels"].map((c) => svg("g", { class: c }));
    this.passed = way;
    setAttribute(way, "aria-hidden", "true");
    for (const frame of drawing.frames) frames.append(this.frame(frame));
    // A connection is labelled where it leaves an element, not again where it crosses the frame of a compound.
    const outputs = new Set(drawing.boxes.flatMap((b) => b.outputs.map((p) => spot(p.x, b.place.y + b.place.height))));
    for (const line of drawing.lines) {
      const path = svg("path", { class: `line ${line.kind}`, "stroke-width": width(0), d: line.path, "marker-end": line.arrow ? `url(#arrow-${line.kind})` : null });
      const label = svg("text", { class: "rate", x: line.start.x + 7, y: line.start.y + 15 });
      lines.append(path);
      labels.append(label);
      this.lines.push({ line, path, label, labelled: outputs.has(spot(line.start.x, line.start.y)) });
    }
    for (const box of drawing.boxes) boxes.append(this.box(box));
    const title = `The graph: ${graph.elements.length} elements, ${graph.connections.length} connections`;
    this.svg = svg(
      "svg",
      { role: "group", "aria-label": title, "aria-describedby": "graph-help", viewBox: `0 0 ${drawing.width} ${drawing.height}` },
      svg("defs", {}, marker("push"), marker("pull")),
      frames,
      lines,
      way,
      boxes,
      labels,
    );
    this.sheet.replaceChildren(this.svg);
    this.byElement = new Map(this.items.filter((i) => i.box?.element).map((i) => [i.box.element, i]));
    this.focusable(this.items.find((i) => i.key === held) ?? this.items[0], hadFocus);
    if (this.selected) this.select(this.selected);
    this.ports = new Map(graph.connections.map((c, i) => [`${c.from.element} ${c.from.port}`, i]));
    this.showWay();
    if (this.zoom === null || this.fits) this.fit();
    else this.scale(this.zoom);
  }

  /** Makes a node that can be reached by keyboard, and does something when it is clicked or Enter is pressed. */
  item(node, key, place, act, more) {
    const item = { node, key, place, act, ...more };
    node.setAttribute("tabindex", "-1");
    node.addEventListener("click", () => {
      this.focusable(item);
      act();
    });
    node.addEventListener("focus", () => this.focusable(item));
    this.items.push(item);
    return item;
  }

  frame(frame) {
    const { x, y, width: w, height } = frame.place;
    const head = svg("g", { class: "band", role: "button", "aria-expanded": "true", "aria-label": `Compound ${frame.compound}, ${frame.size}, fold` },
      svg("rect", { class: "grip", x, y, width: w, height: 24, rx: 6 }),
      svg("text", { class: "sign", x: frame.name + 10, y: y + 16.5 }, "▾"),
      svg("text", { class: "head", x: frame.name + 24, y: y + 16.5 }, frame.head),
    );
    this.item(head, `fold ${frame.compound}`, { x, y, width: w, height: 24 }, () => this.fold([...this.folded, frame.compound]));
    return svg("g", {}, svg("rect", { class: "frame", x, y, width: w, height, rx: 6 }), head,
      ...frame.inputs.map((p) => port(p, y, false)), ...frame.outputs.map((p) => port(p, y + height, true)));
  }

  box(box) {
    const { x, y, width: w, height } = box.place;
    const node = svg("g", { class: `box ${box.look}`, role: "button" }, svg("title", {}, box.title), svg("rect", { class: "body", x, y, width: w, height, rx: 5 }));
    const fill = svg("rect", { class: "fill", x: x + 1, y: y + height, width: w - 2, height: 0, rx: 4 });
    node.append(fill);
    let line = y + 9;
    for (const { text, font } of box.text) {
      line += 16;
      node.append(svg("text", { class: font, x: x + w / 2, y: line }, text));
    }
    const level = svg("text", { class: "level", x: x + 5, y: y + height - 4 });
    const badge = svg("g", { class: "badge", visibility: "hidden" }, svg("rect", { rx: 8, height: 16, y: y - 9 }), svg("text", { y: y + 3 }));
    node.append(...box.inputs.map((p) => port(p, y, false)), ...box.outputs.map((p) => port(p, y + height, true)), level, badge);
    const name = box.element ?? box.compound;
    const act = box.element ? () => this.open(name) : () => this.fold(this.folded.filter((f) => f !== name));
    if (box.compound) node.setAttribute("aria-expanded", "false");
    else node.dataset.element = name;
    const item = this.item(node, name, box.place, act, { box, fill, level, badge });
    this.describe(item, "");
    return node;
  }

  /** Sets what a screen reader says of a box. */
  describe(item, more) {
    setAttribute(item.node, "aria-label", `${item.box.compound ? "Compound " : ""}${item.box.title}${more}`);
  }

  /** Shows a reading. Only what is in view is changed, so that large graphs stay fluent; the rest follows when it comes into view. */
  update(graph, reading) {
    if (graph !== this.graph) return;
    const drops = new Map();
    for (const d of reading.drops) {
      const sum = drops.get(d.element) ?? { rate: 0, packets: 0 };
      drops.set(d.element, { rate: sum.rate + (d.rate ?? 0), packets: sum.packets + d.packets });
    }
    this.now = { rates: reading.rates, queues: new Map(reading.queues.map((q) => [q.element, q])), drops };
    this.refresh();
  }

  /** Shows the last reading in what is in view. */
  refresh() {
    if (!this.now) return;
    const { sheet, zoom, now } = this;
    // The drawing is in the middle of a sheet that is larger.
    const [dx, dy] = [Math.max(0, sheet.clientWidth - this.graph.drawing.width * zoom) / 2, Math.max(0, sheet.clientHeight - this.graph.drawing.height * zoom) / 2];
    const [left, top] = [(sheet.scrollLeft - dx) / zoom - 100, (sheet.scrollTop - dy) / zoom - 100];
    const [right, bottom] = [left + sheet.clientWidth / zoom + 200, top + sheet.clientHeight / zoom + 200];
    for (const line of this.lines) {
      const { x, y } = line.line.start;
      // A long line is thick or thin as a whole, so it is changed even if its label is not in view.
      if (line.now !== now) this.showLine(line, x > left && x < right && y > top && y < bottom);
    }
    for (const item of this.items) {
      const { x, y, width: w, height } = item.place;
      if (x < right && x + w > left && y < bottom && y + height > top) this.showBox(item);
    }
  }

  showLine(line, inView) {
    const rates = line.line.connections.map((c) => this.now.rates[c]);
    const sum = rates.every((r) => r !== null && r !== undefined) ? rates.reduce((a, b) => a + b, 0) : null;
    setAttribute(line.path, "stroke-width", width(sum ?? 0).toFixed(1));
    setAttribute(line.path, "data-flow", sum === null ? "unknown" : sum > 0 ? "some" : "none");
    if (!inView) return;
    line.now = this.now;
    setText(line.label, sum > 0 && line.labelled ? rate(sum) : "");
  }

  showBox(item) {
    if (!item.box || !this.now || item.now === this.now) return;
    item.now = this.now;
    const queue = this.now.queues.get(item.box.element);
    const dropped = item.box.element ? this.now.drops.get(item.box.element) : this.within(item.box.compound, this.now.drops);
    this.level(item, queue);
    this.badge(item, dropped);
    const held = queue ? `, ${queue.length} of ${queue.capacity} packets` : "";
    const lost = dropped?.rate > 0 ? `, drops ${number(dropped.rate)} packets a second` : dropped?.packets > 0 ? `, has dropped ${dropped.packets} packets` : "";
    this.describe(item, held + lost);
  }

  /** What the elements of a folded compound drop. */
  within(compound, drops) {
    const sum = { rate: 0, packets: 0 };
    for (const [element, d] of drops) {
      if (!element.startsWith(`${compound}/`)) continue;
      sum.rate += d.rate;
      sum.packets += d.packets;
    }
    return sum;
  }

  level(item, queue) {
    if (!queue) return;
    const { y, height } = item.box.place;
    const full = queue.capacity > 0 ? Math.min(queue.length / queue.capacity, 1) : 0;
    const h = (height - 2) * full;
    setAttribute(item.fill, "y", (y + height - 1 - h).toFixed(1));
    setAttribute(item.fill, "height", h.toFixed(1));
    item.fill.classList.toggle("full", full === 1);
    setText(item.level, queue.capacity > 0 ? `${number(queue.length)}/${number(queue.capacity)}` : "");
  }

  badge(item, dropped) {
    const shown = dropped?.packets > 0;
    setAttribute(item.badge, "visibility", shown ? "visible" : "hidden");
    item.node.classList.toggle("dropping", dropped?.rate > 0);
    if (!shown) return;
    const text = dropped.rate > 0 ? rate(dropped.rate) : number(dropped.packets).replace(" ", "");
    const [rect, label] = item.badge.children;
    if (label.textContent === text) return;
    const { x, width: w } = item.box.place;
    const size = 12 + 6.4 * text.length;
    setText(label, text);
    setAttribute(rect, "width", size);
    setAttribute(rect, "x", x + w - size + 8);
    setAttribute(label, "x", x + w - size / 2 + 8);
  }

  /** Marks an element as the one whose details are shown. */
  select(name) {
    this.selected = name;
    for (const item of this.items) item.node.classList.toggle("selected", item.key === name);
  }

  /** The box in which an element is drawn: its own, or that of a folded compound. */
  boxOf(name) {
    return this.byElement.get(name) ?? this.items.find((i) => i.box?.compound && name.startsWith(`${i.box.compound}/`));
  }

  /** Marks the way of a traced packet: these steps, of which the last is where the packet is now. */
  way(steps) {
    this.steps = steps;
    this.showWay();
    const here = steps.length && this.boxOf(steps.at(-1).element);
    if (here) here.node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  showWay() {
    const steps = this.steps ?? [];
    const passed = new Set(steps.filter((s) => s.output !== null).map((s) => this.ports.get(`${s.element} ${s.output}`)));
    const lines = this.lines.filter(({ line }) => line.connections.some((c) => passed.has(c)));
    const boxes = new Set(steps.map((s) => this.boxOf(s.element)).filter((item) => item));
    const ring = (item, kind) => {
      const { x, y, width: w, height } = item.place;
      return svg("rect", { class: kind, x: x - 3, y: y - 3, width: w + 6, height: height + 6, rx: 7 });
    };
    const marks = [...lines.map(({ line }) => svg("path", { class: "passed", d: line.path })), ...[...boxes].map((item) => ring(item, "visited"))];
    const last = steps.at(-1);
    const here = last && this.boxOf(last.element);
    if (here) {
      const kind = last.event === "dropped" ? "here lost" : "here";
      marks.push(ring(here, kind), svg("circle", { class: kind, cx: here.place.x - 5, cy: here.place.y - 5, r: 7 }));
    }
    this.passed.replaceChildren(...marks);
  }

  /** Scrolls to an element, and unfolds the compounds around it. */
  async reveal(name) {
    const around = this.folded.filter((f) => name.startsWith(`${f}/`));
    if (around.length) await this.fold(this.folded.filter((f) => !around.includes(f)));
    const item = this.byElement.get(name);
    if (!item) return;
    if (this.zoom < SMALL) this.scale(0.8);
    this.focusable(item, true);
    item.node.scrollIntoView({ block: "center", inline: "center" });
  }

  /** Makes an item the one that the Tab key reaches. */
  focusable(item, focus = false) {
    if (!item) return;
    this.current?.node.setAttribute("tabindex", "-1");
    item.node.setAttribute("tabindex", "0");
    this.current = item;
    this.showBox(item);
    if (focus) item.node.focus({ preventScroll: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = { Enter: () => this.current?.act(), " ": () => this.current?.act(), "+": () => this.zoomBy(1.25), "-": () => this.zoomBy(0.8), 0: () => this.fit() };
    const move = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[event.key];
    if (move) this.move(...move);
    else if (event.key === "Home") this.step(this.items[0]);
    else if (event.key === "End") this.step(this.items.at(-1));
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  step(item) {
    this.focusable(item, true);
    item?.node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Moves to the nearest item in a direction. Distance across the direction counts twice. */
  move(dx, dy) {
    if (!this.current) return;
    const middle = ({ place }) => [place.x + place.width / 2, place.y + place.height / 2];
    const [x, y] = middle(this.current);
    let best = null;
    for (const item of this.items) {
      const [u, v] = middle(item);
      const along = (u - x) * dx + (v - y) * dy;
      if (item === this.current || along <= 4) continue;
      const distance = along + 2 * Math.abs((u - x) * dy + (v - y) * dx);
      if (!best || distance < best.distance) best = { item, distance };
    }
    if (best) this.step(best.item);
  }

  /** Sets the zoom, and keeps the middle in place. */
  scale(zoom) {
    const { drawing } = this.graph;
    const { sheet } = this;
    const old = this.zoom ?? zoom;
    const [x, y] = [(sheet.scrollLeft + sheet.clientWidth / 2) / old, (sheet.scrollTop + sheet.clientHeight / 2) / old];
    this.zoom = Math.min(Math.max(zoom, LIMITS[0]), LIMITS[1]);
    this.svg.setAttribute("width", Math.max(drawing.width * this.zoom, 1));
    this.svg.setAttribute("height", Math.max(drawing.height * this.zoom, 1));
    this.svg.classList.toggle("small", this.zoom < SMALL);
    sheet.scrollTo(x * this.zoom - sheet.clientWidth / 2, y * this.zoom - sheet.clientHeight / 2);
    this.refresh();
  }
  zoomBy(factor) {
    this.fits = false;
    this.scale(this.zoom * factor);
  }
  /** Shows the whole drawing. */
  fit() {
    const { drawing } = this.graph ?? {};
    if (!drawing || !this.sheet.clientWidth) return;
    this.fits = true;
    this.scale(Math.min(1, (this.sheet.clientWidth - 24) / drawing.width, (this.sheet.clientHeight - 24) / drawing.height));
  }
  /** The view is visible again. */
  shown() {
    if (this.fits) this.fit();
  }

  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }

  /** Moves the drawing with the pointer, if it is not on an item. */
  drag(event) {
    if (event.button !== 0 || event.pointerType === "touch" || event.target.closest("[role=button]")) return;
    const { sheet } = this;
    const [x, y] = [sheet.scrollLeft + event.clientX, sheet.scrollTop + event.clientY];
    const move = (e) => sheet.scrollTo(x - e.clientX, y - e.clientY);
    sheet.setPointerCapture(event.pointerId);
    sheet.addEventListener("pointermove", move);
    sheet.addEventListener("lostpointercapture", () => sheet.removeEventListener("pointermove", move), { once: true });
  }
}
