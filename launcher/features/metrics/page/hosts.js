// SPDX-License-Identifier: Apache-2.0
// The hosts: those with a problem first.

const HOST_KNOWN = new Set(["host", "state", "slots", "ranks", "spare", "drain_s", "blacklisted_s", "load", "memory_bytes",
  "memory_available_bytes", "pressure"]);
const HOST_ROWS = 16;
const HOST_GOOD = new Set(["up", "running", "ready", "in use"]);
const HOST_BAD = new Set(["lost", "not reached", "blacklisted", "unreached"]);

function hostKind(host) {
  if (HOST_BAD.has(host.state) || host.blacklisted_s !== undefined) return "bad";
  if (host.state === "silent" || host.state === "draining" || host.drain_s !== undefined) return "warn";
  return HOST_GOOD.has(host.state) ? "good" : "off";
}

function rankList(numbers) {
  const parts = [];
  for (let at = 0; at < numbers.length;) {
    const first = numbers[at];
    let last = first;
    for (at++; at < numbers.length && numbers[at] === last + 1; at++) last = numbers[at];
    parts.push(first === last ? `${first}` : `${first}-${last}`);
  }
  return parts.length > 6 ? `${numbers.length} ranks` : parts.join(", ");
}

function pressureOf(host) {
  const all = Object.entries(host.pressure || {}).filter(([, waits]) => isNumber(waits) && waits >= 1);
  return all.map(([resource, waits]) => `${resource} ${percent(waits)}`).join(", ");
}

function hostColumns(more) {
  return [
    {title: "host", name: true, put: (cell, host) => setText(cell, plain(host.host))},
    {title: "state", put: (cell, host) => pill(cell, plain(host.state), hostKind(host))},
    {title: "ranks", put: (cell, host) => setText(cell, rankList(host.ranks || []) || "none")},
    {title: "load", number: true, put: (cell, host) => setText(cell, isNumber(host.load) ? host.load.toFixed(1) : "")},
    {title: "memory", put(cell, host) {
      const total = host.memory_bytes, used = total - host.memory_available_bytes;
      meter(cell, isNumber(used) ? `${bytes(used)} of ${bytes(total)}` : "", isNumber(used) ? used / total : 0);
    }},
    ...more.map(key => ({title: titleOf(key), number: true, put: (cell, host) => {
      const found = extras(host, HOST_KNOWN)[key];
      setText(cell, isNumber(found) ? inUnit(key, found) : "");
    }})),
    {title: "waits for", wide: true, put: (cell, host) => setText(cell, pressureOf(host))},
  ];
}

class Hosts {
  constructor() {
    this.table = new Table("hosts");
    this.rows = HOST_ROWS;
    byId("hosts-more").onclick = () => { this.rows *= 4; this.show(this.job); };
  }

  show(job) {
    this.job = job;
    const order = [...job.hosts.keys()].sort((a, b) =>
      BADNESS[hostKind(job.hosts[a])] - BADNESS[hostKind(job.hosts[b])] || a - b);
    const shown = order.slice(0, this.rows).map(at => job.hosts[at]);
    const more = [...new Set(job.hosts.slice(0, 64).flatMap(host => Object.keys(extras(host, HOST_KNOWN))))];
    this.table.show(hostColumns(more), shown, host => host.host);
    byId("hosts-more").hidden = shown.length === job.hosts.length;
    setText(byId("hosts-more"), `Show more (${plural(job.hosts.length - shown.length, "host")})`);
  }
}
