// SPDX-License-Identifier: Apache-2.0
// The last output of one rank, or of all.

class Output {
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.rank = undefined;
    this.follows = true; // the end, until the user scrolls away from it
    byId("output").onscroll = event => {
      const where = event.target;
      this.follows = where.scrollHeight - where.scrollTop - where.clientHeight < 40;
    };
    byId("output-rank").onchange = () => {
      const chosen = byId("output-rank").value;
      this.choose(chosen === "" ? undefined : Number(chosen));
    };
  }

  choose(rank) {
    this.rank = rank;
    this.key = undefined;
    this.follows = true;
    this.showChoice();
    this.changed(rank);
    return this.update().catch(() => {}); // the page itself says that there is no answer
  }

  // The list of the ranks that one can choose.
  ranks(numbers) {
    const key = numbers.join();
    if (key === this.numbers) return;
    this.numbers = key;
    byId("output-rank").replaceChildren(element("option", {value: "", textContent: "all ranks"}),
      ...numbers.map(rank => element("option", {value: String(rank), textContent: `rank ${rank}`})));
    this.showChoice();
  }

  showChoice() {
    byId("output-rank").value = this.rank === undefined ? "" : String(this.rank);
  }

  async update() {
    const rank = this.rank;
    const output = await this.ask("output.json", rank === undefined ? {} : {rank});
    if (rank === this.rank) this.show(output);
  }

  show(output) {
    const where = byId("output"), key = JSON.stringify(output);
    if (key === this.key) return;
    this.key = key;
    const follows = this.follows;
    const lines = output.lines.map(line => this.line(line));
    if (output.bar !== undefined) lines.push(element("div", {className: "bar", textContent: plain(output.bar)}));
    if (lines.length === 0) lines.push(element("div", {className: "label", textContent: output.none || "no output yet"}));
    where.replaceChildren(...lines);
    if (follows) where.scrollTop = where.scrollHeight;
  }

  line(line) {
    const kind = line.rank === null ? "launcher" : line.stderr ? "stderr" : "stdout";
    const who = this.rank === undefined && line.rank !== null ? ` [${line.rank}]` : "";
    return element("div", {className: kind},
      element("span", {className: "label", textContent: `${clock(line.time)}${who} `}), plain(line.text));
  }
}
