// SPDX-License-Identifier: Apache-2.0
// The time line: when the ranks ran, and what happened.

const EVENTS = 30;

// What happened, the last first: {time, text, bad}.
function happened(job) {
  const list = [{time: job.started, text: "the job started"}];
  for (const event of job.events || []) list.push({time: event.time, text: plain(event.text)});
  for (const rank of job.ranks) {
    if (!failed(rank) || !isNumber(rank.ended)) continue;
    list.push({time: rank.ended, text: `rank ${rank.rank} on ${plain(rank.host)}: ${stateOf(rank)}`, bad: true});
  }
  return list.filter(one => isNumber(one.time)).sort((a, b) => b.time - a.time).slice(0, EVENTS);
}

// The times in which the ranks ran, and the restarts between them.
function epochsOf(job) {
  const epochs = job.epochs || [];
  if (epochs.length === 0) return {spans: [{from: job.started, to: job.now}], restarts: []};
  const spans = [], restarts = [];
  epochs.forEach((epoch, at) => {
    const next = epochs[at + 1];
    const to = next ? next.time - next.lost_s : job.now;
    spans.push({from: epoch.time, to, text: `epoch ${epoch.epoch}: ${plural(epoch.size, "rank")}`});
    if (at > 0 || epoch.epoch > 1)
      restarts.push({from: epoch.time - epoch.lost_s, to: epoch.time,
        text: `epoch ${epoch.epoch}: ${plain(epoch.cause)}, ${epoch.lost_s.toFixed(1)} s`});
  });
  return {spans, restarts};
}

class TimeLine {
  show(job) {
    const line = byId("time-line"), begin = job.started, length = Math.max(1, job.now - begin);
    const place = time => `${Math.max(0, Math.min(1, (time - begin) / length)) * 100}%`;
    const piece = (name, one) => {
      const made = element("div", {className: name, title: one.text || ""});
      made.style.left = place(one.from);
      if (one.to !== undefined) made.style.width = `${Math.max(0, (one.to - one.from) / length) * 100}%`;
      return made;
    };
    const {spans, restarts} = epochsOf(job);
    const failures = happened(job).filter(one => one.bad).map(one => ({from: one.time, text: one.text}));
    line.replaceChildren(...spans.map(one => piece("span", one)), ...restarts.map(one => piece("span gap", one)),
      ...restarts.map(one => piece("mark", {from: one.to, text: one.text})), ...failures.map(one => piece("mark", one)));
    setText(byId("time-begin"), clock(begin));
    setText(byId("time-end"), `${page.ended ? "the end" : "now"}, after ${duration(job.up_s)}`);
    setText(byId("restarts"), restartsText(job));
    this.events(job);
  }

  events(job) {
    const list = byId("events"), events = happened(job);
    const key = JSON.stringify(events);
    if (key === this.key) return;
    this.key = key;
    list.replaceChildren(...events.map(one => element("li", {},
      element("time", {textContent: clock(one.time)}), element("span", {textContent: one.text}))));
  }
}

const restartsOf = job => (job.restarts || 0) + Object.values(job.changes || {}).reduce((all, one) => all + one, 0);

function restartsText(job) {
  const count = restartsOf(job);
  if (count === 0) return "no restarts";
  const causes = Object.entries(job.changes || {}).map(([cause, times]) => `${times} ${cause.replaceAll("_", " ")}`);
  if (job.restarts) causes.push(`${job.restarts} requeued`);
  const took = isNumber(job.recovery_s) ? `, which took ${job.recovery_s.toFixed(1)} s` : "";
  return `${plural(count, "restart")} (${causes.join(", ")})${took}`;
}
