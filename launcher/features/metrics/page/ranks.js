// SPDX-License-Identifier: Apache-2.0
// The ranks: a map with a square for each, and a table of the worst ones.

const ROWS = 50; // of the table, until the user wants more

// What is known of a rank and shown elsewhere, or not at all.
const RANK_KNOWN = new Set(["rank", "host", "pid", "state", "up_s", "ended", "exit_code", "signal", "progress", "marks", "cpus",
  "cpu_s", "resident_bytes", "threads", "processes", "read_bytes", "written_bytes", "last_output_s"]);

const ORDERS = [
  ["worst", "worst first"], ["rank", "by rank"], ["cpus", "most CPU"], ["resident_bytes", "most memory"],
  ["last_output_s", "longest silence"], ["progress", "least progress"],
];

const failed = rank => rank.signal !== undefined || (rank.exit_code !== undefined && rank.exit_code !== 0);
const marked = rank => rank.marks !== undefined && Object.keys(rank.marks).length > 0;

function kindOf(rank) {
  if (failed(rank)) return "bad";
  if (rank.state === "running") return marked(rank) ? "warn" : "good";
  return "off";
}

// What the others have and this rank never had.
function missing(rank) {
  const marks = rank.marks || {};
  return marks.last_output_s === "none" ? "no output yet" : marks.progress === "none" ? "no progress yet" : "";
}

const remark = rank => kindOf(rank) === "warn" ? missing(rank) || "differs" : stateOf(rank);

function stateOf(rank) {
  if (rank.signal !== undefined) return `killed by signal ${rank.signal}`;
  if (rank.exit_code !== undefined && rank.exit_code !== 0) return `exit code ${rank.exit_code}`;
  return rank.state;
}

// Numbers that this page does not know by name, such as those of GPUs. Of a list, what a user adds up is
// added up, and of the rest it is the mean.
function extras(object, skip) {
  const found = {};
  for (const [key, value] of Object.entries(object)) {
    if (skip.has(key)) continue;
    if (isNumber(value)) found[key] = value;
    else if (Array.isArray(value) && value.length > 0 && value.every(one => one && typeof one === "object"))
      Object.assign(found, merged(key.replace(/s$/, ""), value));
    else if (value && typeof value === "object" && !Array.isArray(value))
      Object.assign(found, merged(key, [value]));
  }
  return found;
}

function merged(name, list) {
  const found = {};
  for (const key of new Set(list.flatMap(one => Object.keys(one)))) {
    const values = list.map(one => one[key]).filter(isNumber);
    if (values.length === 0 || key === "index") continue;
    const sum = values.reduce((all, one) => all + one, 0);
    found[`${name}_${key}`] = /_(bytes|watts|joules)$/.test(key) ? sum : sum / values.length;
  }
  return found;
}

const progressOf = rank => rank.progress && isNumber(rank.progress.percent) ? rank.progress.percent : undefined;

const BADNESS = {bad: 0, off: 3, warn: 1, good: 2};

function sorted(ranks, order) {
  const by = value => (a, b) => value(a) - value(b) || a.rank - b.rank;
  const most = key => by(rank => isNumber(rank[key]) ? -rank[key] : Infinity);
  const orders = {
    worst: by(rank => BADNESS[kindOf(rank)] * 100 - (rank.marks ? Object.keys(rank.marks).length : 0)),
    rank: by(() => 0),
    progress: by(rank => progressOf(rank) ?? Infinity),
  };
  return [...ranks].sort(orders[order] || most(order));
}

function matching(ranks, words) {
  const wanted = words.trim().toLowerCase().split(/[\s,]+/).filter(word => word !== "");
  const matches = (rank, word) => {
    const range = /^(\d+)(?:-(\d+))?$/.exec(word);
    if (range) return rank.rank >= Number(range[1]) && rank.rank <= Number(range[2] ?? range[1]);
    return String(rank.host).toLowerCase().includes(word) || stateOf(rank).includes(word) ||
      (marked(rank) && "differs".startsWith(word));
  };
  return wanted.length === 0 ? ranks : ranks.filter(rank => wanted.some(word => matches(rank, word)));
}

function value(key, title, text, options) {
  return {key, title, number: true, ...options, put(cell, rank) {
    const mark = (rank.marks || {})[key] || "";
    for (const name of ["less", "more"]) cell.classList.toggle(name, mark === name);
    setText(cell, isNumber(rank[key]) ? text(rank[key]) : "");
  }};
}

function rankColumns(ranks, most) {
  const has = test => ranks.some(test);
  const columns = [
    {title: "rank", number: true, put: (cell, rank) => setText(cell, String(rank.rank))},
    {title: "host", name: true, put: (cell, rank) => setText(cell, plain(rank.host))},
    {title: "state", put: (cell, rank) =>
      pill(cell, remark(rank), kindOf(rank))},
  ];
  if (has(rank => progressOf(rank) !== undefined))
    columns.push({title: "progress", put(cell, rank) {
      const done = progressOf(rank);
      meter(cell, done === undefined ? "" : percent(done), (done || 0) / 100);
    }});
  columns.push(value("cpus", "CPU", share), value("resident_bytes", "memory", bytes));
  for (const key of most)
    columns.push({title: titleOf(key), number: true, put: (cell, rank) => {
      const found = extras(rank, RANK_KNOWN)[key];
      setText(cell, isNumber(found) ? inUnit(key, found) : "");
    }});
  columns.push(value("threads", "threads", String, {wide: true}),
    value("read_bytes", "read", bytes, {wide: true}), value("written_bytes", "written", bytes, {wide: true}),
    value("last_output_s", "last output", seconds => `${duration(seconds)} ago`, {wide: true}));
  return columns;
}

class Ranks {
  constructor(choose) {
    this.choose = choose;
    this.table = new Table("ranks", choose);
    this.map = byId("map");
    this.rows = ROWS;
    this.job = {ranks: []};
    byId("order").append(...ORDERS.map(([key, text]) => element("option", {value: key, textContent: text})));
    byId("order").onchange = byId("filter").oninput = () => { this.rows = ROWS; this.show(this.job); };
    byId("ranks-more").onclick = () => { this.rows *= 4; this.show(this.job); };
    this.map.onclick = event => {
      if (event.target.dataset.rank !== undefined) choose(Number(event.target.dataset.rank));
    };
  }

  show(job) {
    this.job = job;
    const ranks = matching(job.ranks, byId("filter").value);
    const shown = sorted(ranks, byId("order").value).slice(0, this.rows);
    const more = [...new Set(job.ranks.slice(0, 64).flatMap(rank => Object.keys(extras(rank, RANK_KNOWN))))];
    this.table.show(rankColumns(job.ranks, more), shown, rank => rank.rank);
    const rest = ranks.length - shown.length;
    byId("ranks-more").hidden = rest === 0;
    setText(byId("ranks-more"), `Show more (${plural(rest, "rank")})`);
    this.showMap(job.ranks);
    this.mark(this.chosen);
  }

  showMap(ranks) {
    if (ranks.length < 8) {
      this.map.replaceChildren();
      return;
    }
    while (this.map.children.length > ranks.length) this.map.lastChild.remove();
    while (this.map.children.length < ranks.length) this.map.append(element("i"));
    [...ranks].sort((a, b) => a.rank - b.rank).forEach((rank, at) => {
      const square = this.map.children[at], kind = kindOf(rank);
      if (square.dataset.rank !== String(rank.rank)) square.dataset.rank = rank.rank;
      if (square.dataset.kind !== kind) square.dataset.kind = square.className = kind;
      const title = `rank ${rank.rank} on ${plain(rank.host)}: ${remark(rank)}`;
      if (square.title !== title) square.title = title;
    });
  }

  mark(chosen) {
    this.chosen = chosen;
    for (const [rank, row] of this.table.rows) row.classList.toggle("chosen", rank === chosen);
    for (const square of this.map.children)
      square.classList.toggle("chosen", chosen !== undefined && square.dataset.rank === String(chosen));
  }
}
