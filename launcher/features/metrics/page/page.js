// SPDX-License-Identifier: Apache-2.0
// Asks the job again and again, and shows what it says. Or it shows what is in this file (--page-file).

const PERIOD_MS = 2000;
const PERIOD_MANY_MS = 5000; // with many ranks
const MANY = 1000;
const LATE_MS = 15000;
const kept = byId("kept") ? JSON.parse(byId("kept").textContent) : undefined;
const token = new URLSearchParams(location.search).get("token");

// The output of a rank, without a server.
const keptOutput = async (path, {rank}) => rank === undefined ? kept.output
  : kept.outputs[rank] || {lines: [], none: kept.left_out.outputs > 0 ? "this file does not have the output of this rank" : "no output"};

async function askJson(path, values) {
  const query = new URLSearchParams(values);
  if (token !== null) query.set("token", token);
  const answer = await fetch(`${path}?${query}`, {cache: "no-store", signal: AbortSignal.timeout(LATE_MS)});
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

const page = {job: undefined, ended: undefined, heard: 0, silent: false};
const output = new Output(kept ? keptOutput : askJson, rank => ranks.mark(rank));
const ranks = new Ranks(rank => output.choose(output.rank === rank ? undefined : rank));
const hosts = new Hosts();
const timeLine = new TimeLine();
const curves = new Curves();

const endKind = end => end.status === 0 ? "good" : end.cause === "stopped" ? "warn" : "bad";

function notices(job) {
  const list = [];
  if (page.ended) {
    const ended = page.ended;
    list.push([endKind(ended),
      ended.failure ? plain2(ended.failure) : `The job has ended with status ${ended.status}. ${plain(ended.text || "")}`]);
  } else if (page.silent) {
    list.push(["warn", "hvdrun does not answer. The job has ended, it is suspended, or the connection is broken. " +
      `'hvdrun status ${plain(job.job)}' says more. This is what was known last.`]);
  }
  if (job.waits_for) list.push(["warn", `waits for ${plain(job.waits_for)}`]);
  for (const host of job.hosts) {
    if (hostKind(host) === "bad" || host.state === "silent")
      list.push([hostKind(host), `host ${plain(host.host)}: ${plain(host.state)}`]);
  }
  const dead = job.ranks.filter(failed);
  if (dead.length > 0 && !page.ended)
    list.push(["bad", dead.slice(0, 5).map(rank => `rank ${rank.rank} on ${plain(rank.host)}: ${stateOf(rank)}`)
      .join("; ") + (dead.length > 5 ? `; and ${dead.length - 5} more` : "")]);
  for (const stall of job.stalls || []) list.push(["warn", plain(typeof stall === "string" ? stall : stall.text || "")]);
  return list.slice(0, 8);
}

const plain2 = text => text.split("\n").map(plain).join("\n").trim();

function showNotices(job) {
  const list = notices(job), key = JSON.stringify(list);
  if (key === page.notices) return;
  page.notices = key;
  byId("notices").replaceChildren(...list.map(([kind, text]) =>
    element("div", {className: `notice ${kind}`, textContent: text})));
}

const total = (list, key) => {
  const values = list.map(one => one[key]).filter(isNumber);
  return values.length === 0 ? undefined : values.reduce((all, one) => all + one, 0);
};

function tilesOf(job) {
  const running = job.ranks.filter(rank => rank.state === "running").length;
  const differ = job.ranks.filter(rank => rank.state === "running" && marked(rank)).length;
  const up = job.hosts.filter(host => hostKind(host) === "good").length;
  const cpus = total(job.ranks, "cpus"), memory = total(job.ranks, "resident_bytes");
  const list = [
    [page.ended ? `${job.size || job.ranks.length}` : `${running} of ${job.size || job.ranks.length}`,
      page.ended ? named(job.size || job.ranks.length, "rank") : differ > 0 ? `ranks run, ${differ} differ` : "ranks run"],
    [page.ended ? `${job.hosts.length}` : `${up} of ${job.hosts.length}`,
      page.ended ? named(job.hosts.length, "host") : job.hosts.length === 1 ? "host is up" : "hosts are up"],
  ];
  if (!page.ended)
    list.push([cpus === undefined ? "–" : cpus.toFixed(1), "CPUs in use"],
      [memory === undefined ? "–" : bytes(memory), "memory in use"]);
  const gpus = (kept && kept.left_out.ranks > 0 ? [] : job.ranks).map(rank => extras(rank, RANK_KNOWN));
  for (const key of [...new Set(gpus.slice(0, 64).flatMap(one => Object.keys(one)))].filter(one => /^gpu/.test(one)).slice(0, 2)) {
    const sum = total(gpus, key), count = gpus.filter(one => isNumber(one[key])).length;
    list.push([inUnit(key, /_(bytes|watts|joules)$/.test(key) ? sum : sum / count), titleOf(key)]);
  }
  list.push([String(restartsOf(job)), restartsOf(job) === 1 ? "restart" : "restarts"]);
  if (page.ended)
    list.push([job.up_s < 60 ? `${job.up_s.toFixed(1)} s` : duration(job.up_s), "run time"]);
  else
    list.push([isNumber(job.last_output_s) ? duration(job.last_output_s) : "–", "since last output"]);
  return list;
}

function showTiles(job) {
  const list = tilesOf(job), where = byId("tiles");
  if (where.children.length !== list.length)
    where.replaceChildren(...list.map(() => element("div", {className: "tile"}, element("b"), element("span"))));
  list.forEach(([text, title], at) => {
    setText(where.children[at].firstChild, text);
    setText(where.children[at].lastChild, title);
  });
}

function showProgress(progress) {
  byId("progress").hidden = progress === undefined;
  if (progress === undefined) return;
  const done = isNumber(progress.percent) ? progress.percent : 0;
  byId("progress-bar").style.width = `${Math.max(0, Math.min(100, done))}%`;
  const left = isNumber(progress.eta_s) && !page.ended ? `${duration(progress.eta_s)} left, until ${clock(Date.now() / 1000 + progress.eta_s)}` : "";
  setText(byId("progress-eta"), [isNumber(progress.percent) ? percent(done) : "", left].filter(one => one).join(" · "));
  const metrics = Object.entries(progress.metrics || {}).map(([name, one]) =>
    `${plain(name)} ${isNumber(one) ? Number(one.toPrecision(4)) : plain(one)}`);
  setText(byId("progress-text"), [plain(progress.text || ""), ...metrics].filter(one => one).join(" · "));
}

function stateKind(state) {
  if (page.ended) return endKind(page.ended);
  return state === "running" ? "good" : "warn";
}

function showState(job) {
  const end = page.ended && page.ended.cause === "stopped" ? "stopped" : "ended";
  const text = page.ended ? `${end} with status ${page.ended.status}` : page.silent ? "no answer" : plain(job.state);
  const where = byId("state");
  where.className = `pill ${page.silent && !page.ended ? "warn" : stateKind(job.state)}`;
  setText(where, text);
  document.title = `${text} · ${plain(job.name || job.job)}`;
}

function showLive() {
  const where = byId("live"), age = (Date.now() - page.heard) / 1000;
  where.classList.toggle("on", !page.silent && !page.ended);
  where.classList.toggle("late", page.silent && !page.ended);
  for (const kind of ["good", "warn", "bad"]) where.classList.toggle(kind, page.ended !== undefined && stateKind() === kind);
  setText(where, page.ended ? "final" : page.heard === 0 ? "connecting" : page.silent ? `${duration(age)} old` : "live");
}

function show() {
  const job = page.job;
  setText(byId("job"), job.name ? `${plain(job.name)} · ${plain(job.job)}` : plain(job.job));
  setText(byId("command"), plain(job.command));
  byId("command").title = plain(job.command);
  showState(job);
  showNotices(job);
  showTiles(job);
  showProgress(job.progress);
  curves.show(job);
  timeLine.show(job);
  hosts.show(job);
  ranks.show(job);
  output.ranks(job.ranks.map(rank => rank.rank).sort((a, b) => a - b));
  setText(byId("hosts-count"), plural(job.hosts.length, "host"));
  const known = `'hvdrun explain ${plain(job.job)}' says more`;
  const note = kept ? `the page as it was at the end of the job, on ${day(job.now)}; ${known}`
    : page.ended && job.page_file ? `a reload of this page finds nothing, but ${plain(job.page_file)} has it; ${known}`
    : page.ended ? `a reload of this page finds nothing; ${known}` : "this page only shows, and changes nothing";
  setText(byId("footer"), `hvdrun ${plain(job.version)} · ${plain(job.folder)} · ${note}`);
  showLive();
}

function taken(job) {
  page.job = job;
  page.heard = Date.now();
  page.silent = false;
}

async function update() {
  try {
    const job = await askJson("job.json", {});
    if (page.ended) return;
    taken(job);
    const history = await askJson("history.json", {since: curves.next});
    if (page.ended) return;
    curves.add(history);
    await output.update().catch(() => {}); // an elastic job may have lost the chosen rank
  } catch (problem) {
    if (page.job === undefined) setText(byId("live"), problem.message);
    page.silent = true;
  }
  if (page.job !== undefined) show();
}

async function follow() {
  while (!page.ended) {
    if (!document.hidden) await update();
    const many = page.job !== undefined && page.job.ranks.length > MANY;
    await new Promise(done => { page.next = done; setTimeout(done, many ? PERIOD_MANY_MS : PERIOD_MS); });
  }
}

// What is known at the end. Ranks that ran until then have ended too.
function finished(end) {
  const job = page.job;
  page.ended = end;
  if (job === undefined) return;
  if (isNumber(end.up_s)) { // what was known last is older
    job.up_s = end.up_s;
    job.now = job.started + end.up_s;
  }
  if (isNumber(end.percent) && job.progress) {
    job.progress.percent = end.percent;
    if (!kept) curves.add({points: [{time: job.now, progress: end.percent / 100, ranks: 0}]});
  }
  for (const rank of job.ranks) {
    if (rank.state === "running" || rank.state === "exited") rank.state = "ended";
    for (const key of ["cpus", "marks", "last_output_s"]) delete rank[key];
    Object.assign(rank, (end.ranks || []).find(one => one.rank === rank.rank));
  }
  for (const host of job.hosts) {
    for (const key of ["load", "pressure", "memory_bytes"]) delete host[key];
    if (hostKind(host) === "good") host.state = "ended";
  }
  if (output.rank === undefined && end.lines) output.show(end);
}

// The server answers this at the end of the job; or with nothing, and then the page asks again.
async function awaitEnd() {
  while (!page.ended) {
    const end = await askJson("end.json", {}).catch(() => undefined);
    if (end !== undefined && end.status !== undefined) finished(end);
    else if (end === undefined) await new Promise(done => setTimeout(done, PERIOD_MS));
  }
  if (page.job !== undefined) show();
}

function showKept() {
  taken(kept.job);
  curves.add(kept.history);
  finished(kept.end);
  output.show(kept.output);
  for (const noun of ["rank", "host"]) {
    const count = kept.left_out[`${noun}s`];
    byId(`${noun}s-left-out`).hidden = count === 0;
    setText(byId(`${noun}s-left-out`), `This file leaves out ${plural(count, `more ${noun}`)}; those that failed came first.`);
  }
  show();
}

if (kept) {
  showKept();
} else {
  document.onvisibilitychange = () => { if (!document.hidden && page.next) page.next(); };
  follow();
  awaitEnd();
}
