// SPDX-License-Identifier: Apache-2.0
// Curves of the last hour: how far the job was, and what it used.

const CURVE_HEIGHT = 104;
const CURVE_ROOM = {left: 4, right: 58, top: 6}; // around the curve, in pixels; the values of the axis are at its right
const CURVES_S = 3600;
const DECIMAL = [1, 2, 5, 10];
const BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

// The least round number from `value` on.
function roundUp(value, base, steps) {
  const unit = base ** Math.floor(Math.log(Math.max(value, 1e-9)) / Math.log(base));
  return unit * steps.find(step => unit * step >= value * (1 - 1e-9));
}

const cpuText = value => `${Number(value.toPrecision(value < 10 ? 2 : 3))} CPU${value === 1 ? "" : "s"}`;

// Those that have no data are not shown.
const CURVES = [
  {key: "progress", title: "Progress", text: value => percent(100 * value), top: () => 1, last: true},
  {key: "cpus", title: "CPUs in use", text: cpuText, top: most => roundUp(Math.max(most, 1), 10, DECIMAL)},
  {key: "resident_bytes", title: "Memory in use", text: bytes, top: most => roundUp(Math.max(most, 1 << 20), 1024, BINARY)},
  {key: "gpu_use_percent", title: "GPU use", text: percent, top: () => 100,
    more: point => isNumber(point.gpu_memory_bytes) ? `, ${bytes(point.gpu_memory_bytes)} of memory` : ""},
];

function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The points with a value, in pieces: a time without one is a gap.
function pieces(points, key) {
  const list = [];
  let piece;
  for (const point of points) {
    if (point.gap || !isNumber(point[key])) piece = undefined;
    if (!isNumber(point[key])) continue;
    if (piece === undefined) list.push(piece = []);
    piece.push(point);
  }
  return list;
}

class Curve {
  constructor(kind, curves) {
    this.kind = kind;
    this.now = element("span", {className: "muted"});
    this.picture = drawn("svg", {tabindex: 0, role: "slider", "aria-label": `${kind.title}, over time`, "aria-valuemin": 0});
    this.begin = element("span");
    this.end = element("span");
    this.figure = element("figure", {className: "curve"},
      element("figcaption", {className: "row"}, element("b", {textContent: kind.title}), this.now), this.picture,
      element("div", {className: "row muted small"}, this.begin, this.end));
    this.picture.onpointermove = this.picture.onpointerdown = event => {
      const part = (event.clientX - this.picture.getBoundingClientRect().left - CURVE_ROOM.left) / this.length;
      curves.choose(curves.nearest(curves.from + part * (curves.to - curves.from)));
    };
    this.picture.onpointerleave = this.picture.onblur = () => curves.choose(undefined);
    this.picture.onfocus = () => { if (this.picture.matches(":focus-visible")) curves.choose(curves.points.length - 1); };
    this.picture.onkeydown = event => curves.key(event);
  }

  // Where a time and a value are in the picture.
  x(time) { return CURVE_ROOM.left + (time - this.from) / Math.max(1e-3, this.to - this.from) * this.length; }
  y(value) { return CURVE_HEIGHT - 1 - value / this.top * (CURVE_HEIGHT - 1 - CURVE_ROOM.top); }

  path(piece) {
    const places = piece.map(point => `${this.x(point.time).toFixed(1)},${this.y(point[this.kind.key]).toFixed(1)}`);
    return `M${places.join("L")}${piece.length === 1 ? "h0" : ""}`;
  }

  area(piece) {
    return `${this.path(piece)}V${CURVE_HEIGHT - 1}H${this.x(piece[0].time).toFixed(1)}Z`;
  }

  grid() {
    return [0, 0.5, 1].flatMap(part => {
      const y = Math.round(this.y(part * this.top)) + 0.5;
      return [drawn("line", {class: "grid", x1: 0, x2: CURVE_ROOM.left + this.length, y1: y, y2: y}),
        drawn("text", {x: this.width, y: y + (part === 0 ? -1 : 4)}, part === 0 ? "0" : this.kind.text(part * this.top))];
    });
  }

  upright(name, time, ...children) {
    const x = this.x(time).toFixed(1);
    return drawn("line", {class: name, x1: x, x2: x, y1: CURVE_ROOM.top, y2: CURVE_HEIGHT}, ...children);
  }

  show(points, restarts, from, to) {
    const key = this.kind.key, values = points.map(point => point[key]).filter(isNumber);
    this.figure.hidden = values.length === 0;
    this.width = this.picture.clientWidth;
    if (values.length === 0 || !this.width) return;
    this.length = this.width - CURVE_ROOM.left - CURVE_ROOM.right;
    Object.assign(this, {points, from, to, most: Math.max(...values), final: values[values.length - 1]});
    this.top = this.kind.top(this.most);
    const list = pieces(points, key);
    this.guide = drawn("g", {});
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${CURVE_HEIGHT}`);
    this.picture.setAttribute("aria-valuemax", points.length - 1);
    this.picture.replaceChildren(...this.grid(), ...list.map(piece => drawn("path", {class: "area", d: this.area(piece)})),
      ...restarts.map(one => this.upright("restart", one.to, drawn("title", {}, one.text))),
      ...list.map(piece => drawn("path", {class: "stroke", d: this.path(piece)})), this.guide);
    setText(this.begin, timeOfDay(from));
    setText(this.end, timeOfDay(to));
  }

  // What is known at a point; undefined: now, or of the whole time.
  mark(at) {
    if (this.figure.hidden || !this.guide) return;
    const {kind} = this, point = this.points[at], known = point && isNumber(point[kind.key]);
    this.guide.replaceChildren(...(point ? [this.upright("guide", point.time)] : []),
      ...(known ? [drawn("circle", {class: "dot", r: 3.5, cx: this.x(point.time), cy: this.y(point[kind.key])})] : []));
    const more = known && kind.more ? kind.more(point) : "";
    const all = page.ended && !kind.last ? `at most ${kind.text(this.most)}` : kind.text(this.final);
    const text = point ? `${known ? kind.text(point[kind.key]) : "not known"}${more} at ${timeOfDay(point.time)}` : all;
    setText(this.now, text);
    this.picture.setAttribute("aria-valuenow", at === undefined ? this.points.length - 1 : at);
    this.picture.setAttribute("aria-valuetext", text);
  }
}

class Curves {
  constructor() {
    this.points = [];
    this.next = 0;
    this.all = CURVES.map(kind => new Curve(kind, this));
    byId("curves-list").append(...this.all.map(curve => curve.figure));
    new ResizeObserver(() => this.draw()).observe(byId("curves-list"));
  }

  // An answer to history.json, or the last point of all.
  add(history) {
    this.points.push(...history.points);
    this.next = history.next ?? this.next;
    const last = this.points[this.points.length - 1];
    while (this.points.length > 0 && last.time - this.points[0].time > CURVES_S) this.points.shift();
  }

  show(job) {
    this.restarts = epochsOf(job).restarts;
    byId("curves").hidden = this.points.length < 2;
    this.draw();
  }

  draw() {
    if (this.points.length < 2 || byId("curves").hidden) return;
    this.from = this.points[0].time;
    this.to = this.points[this.points.length - 1].time;
    const restarts = this.restarts.filter(one => one.to > this.from && one.to < this.to);
    for (const curve of this.all) curve.show(this.points, restarts, this.from, this.to);
    byId("curves-list").classList.toggle("even", this.all.filter(curve => !curve.figure.hidden).length % 2 === 0);
    setText(byId("curves-span"), this.to - this.from > CURVES_S - 60 ? "the last hour" : duration(this.to - this.from));
    this.choose(this.at);
  }

  nearest(time) {
    const distance = at => Math.abs(this.points[at].time - time);
    return [...this.points.keys()].reduce((best, at) => distance(at) < distance(best) ? at : best, 0);
  }

  choose(at) {
    this.at = at;
    for (const curve of this.all) curve.mark(at);
  }

  key(event) {
    const last = this.points.length - 1, at = this.at ?? last;
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, to)));
  }
}
