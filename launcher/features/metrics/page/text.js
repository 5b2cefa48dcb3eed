// SPDX-License-Identifier: Apache-2.0
// Text and elements. Everything that comes from the job is text, never HTML.
"use strict";

function element(name, options, ...children) {
  const made = document.createElement(name);
  Object.assign(made, options);
  made.append(...children);
  return made;
}

const byId = id => document.getElementById(id);

function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

// Escape sequences of terminals are left out. Other control characters would be invisible, and some
// turn the direction of the text.
const ESCAPES = /\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function plain(text) {
  const last = String(text).replace(/\r+$/, "").split("\r").pop(); // what it would overwrite
  return last.replace(ESCAPES, "").replace(CONTROLS, "\ufffd");
}

const isNumber = value => typeof value === "number" && Number.isFinite(value);
const named = (count, noun) => count === 1 ? noun : `${noun}s`;
const plural = (count, noun) => `${count} ${named(count, noun)}`;

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1000 && unit + 1 < units.length; unit++) value /= 1024;
  return `${unit > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = value => String(value).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
  return `${Math.floor(s / 86400)} d ${two(Math.floor(s / 3600) % 24)} h`;
}

const percent = value => `${value.toFixed(value < 10 && value % 1 !== 0 ? 1 : 0)} %`;
const share = value => `${Math.round(value * 100)} %`;

const TODAY = {hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false};
const EARLIER = {month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false};

const timeOfDay = seconds => new Date(seconds * 1000).toLocaleString("en-GB", TODAY);

function clock(seconds) {
  const date = new Date(seconds * 1000);
  const near = Math.abs(Date.now() - date) < 12 * 3600 * 1000;
  return date.toLocaleString("en-GB", near ? TODAY : EARLIER);
}

const day = seconds => new Date(seconds * 1000).toLocaleString("en-GB",
  {year: "numeric", month: "long", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false});

// By the end of a key, which says its unit.
const UNITS = [
  [/_bytes$/, bytes], [/_percent$/, percent], [/_ratio$/, share], [/_watts$/, value => `${value.toFixed(0)} W`],
  [/_joules$/, value => `${(value / 3600).toFixed(0)} Wh`], [/_celsius$/, value => `${value.toFixed(0)} °C`],
  [/_mhz$/, value => `${value.toFixed(0)} MHz`], [/_s$/, duration],
];

const known = key => UNITS.find(([end]) => end.test(key));
const titleOf = key => key.replace(known(key) ? known(key)[0] : /$^/, "").replaceAll("_", " ");

function inUnit(key, value) {
  const unit = known(key);
  return unit ? unit[1](value) : Number.isInteger(value) ? String(value) : value.toPrecision(3);
}

// A table whose rows stay the same elements while their key stays, so that a selection survives.
class Table {
  constructor(id, chosen) {
    this.head = byId(id).tHead;
    this.body = byId(id).tBodies[0];
    this.rows = new Map();
    this.chosen = chosen; // called with the key of a row that the user chooses; or undefined
  }

  // columns: [{title, number, wide, put(cell, item)}]
  show(columns, items, keyOf) {
    const titles = columns.map(column => column.title + (column.wide ? "+" : "")).join("\n");
    if (titles !== this.titles) {
      this.titles = titles;
      this.rows.clear();
      this.head.replaceChildren(element("tr", {}, ...columns.map(column =>
        element("th", {className: Table.classOf(column), textContent: column.title}))));
    }
    const rows = new Map(), order = [];
    for (const item of items) {
      const key = keyOf(item);
      const row = this.rows.get(key) || this.create(key, columns);
      columns.forEach((column, at) => column.put(row.cells[at], item));
      rows.set(key, row);
      order.push(row);
    }
    this.rows = rows;
    order.forEach((row, at) => {
      if (this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] || null);
    });
    while (this.body.children.length > order.length) this.body.lastChild.remove();
  }

  create(key, columns) {
    const row = element("tr", {}, ...columns.map(column => element("td", {className: Table.classOf(column)})));
    if (this.chosen) {
      row.className = "choice";
      row.tabIndex = 0;
      row.onclick = () => this.chosen(key);
      row.onkeydown = event => { if (event.key === "Enter") this.chosen(key); };
    }
    return row;
  }

  static classOf(column) {
    return [column.number ? "number" : "", column.wide ? "wide" : "", column.name ? "name" : ""].join(" ").trim();
  }
}

function pill(cell, text, kind) {
  const inside = cell.firstElementChild || cell.appendChild(element("span"));
  const name = `pill ${kind}`;
  if (inside.className !== name) inside.className = name;
  setText(inside, text);
}

function meter(cell, text, part) {
  if (!cell.firstElementChild) {
    cell.classList.add("meter");
    cell.append(element("span"), element("i"));
  }
  setText(cell.firstElementChild, text);
  cell.lastElementChild.hidden = !(part > 0);
  cell.lastElementChild.style.width = `${Math.max(0, Math.min(1, part || 0)) * 100}%`;
}
