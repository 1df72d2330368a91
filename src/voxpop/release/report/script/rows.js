// The columns of a composite key, which bars separate; a backslash precedes bars and backslashes in values.
const keyParts = (text) => {
  const parts = [""];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "|") parts.push("");
    else parts[parts.length - 1] += text[at] === "\\" ? text[++at] : text[at];
  }
  return parts;
};

// The grams as rows: their texts, what matches a search, and in which order.
class Rows {
  constructor(tree) {
    this.tree = tree;
    this.text = new Array(tree.size);
    this.spaced = tree.words.some((word) => !word || /\s/u.test(word));
    for (let node = 0; node < tree.size; node++) {
      const word = tree.words[tree.token[node]];
      this.text[node] = tree.parent[node] < 0 ? word : `${this.text[tree.parent[node]]} ${word}`;
    }
    const sought = (text) => oneApostrophe(text.toLowerCase());
    this.search = tree.words.every((word) => word === sought(word)) ? this.text : this.text.map(sought);
    this.root = new Uint32Array(tree.size);
    for (let node = 0; node < tree.size; node++)
      this.root[node] = tree.parent[node] < 0 ? node : this.root[tree.parent[node]];
    this.orders = new Map();
  }

  tokens(node) {
    const tokens = [];
    for (let at = node; at >= 0; at = this.tree.parent[at]) tokens.push(this.tree.words[this.tree.token[at]]);
    return tokens.reverse();
  }

  longer(node) {
    return through(this.tree)[node] - this.tree.released[node];
  }

  // Words first, then numbers, then what begins with neither.
  kind(node) {
    if (!this.kinds) {
      this.kinds = Uint8Array.from(this.tree.words, (word) => (/^\p{L}/u.test(word) ? 0 : /^\p{N}/u.test(word) ? 1 : 2));
    }
    return this.kinds[this.tree.token[this.root[node]]];
  }

  // The same order with words first in every group, whose numbers ascend.
  grouped(order, group) {
    const sorted = new Uint32Array(order.length);
    for (let from = 0, at = 0; from < order.length; ) {
      let to = from;
      while (to < order.length && group(order[to]) === group(order[from])) to++;
      for (let kind = 0; kind < 3; kind++)
        for (let place = from; place < to; place++) if (this.kind(order[place]) === kind) sorted[at++] = order[place];
      from = to;
    }
    return sorted;
  }

  order(key) {
    if (!this.orders.has(key)) this.orders.set(key, this.computedOrder(key));
    return this.orders.get(key);
  }

  computedOrder(key) {
    const { tree } = this;
    if (key === "text") return this.grouped(this.alphabetical(), () => 0);
    const canonical = Uint32Array.from({ length: tree.size }, (_, node) => node);
    if (key === "length") return this.grouped(canonical, (node) => tree.length[node]);
    const number = key === "count" ? (node) => tree.counts[node] : (node) => this.longer(node);
    return canonical.sort((a, b) => number(b) - number(a) || this.kind(a) - this.kind(b) || a - b);
  }

  // Depth first is alphabetical: children come sorted.
  alphabetical() {
    const { tree } = this, order = new Uint32Array(tree.size);
    let at = 0;
    const stack = [];
    for (let root = tree.roots - 1; root >= 0; root--) stack.push(root);
    while (stack.length) {
      const node = stack.pop();
      order[at++] = node;
      for (let child = tree.last[node] - 1; child >= tree.first[node]; child--) stack.push(child);
    }
    return order;
  }

  // The released grams that fit, in order; and how many of them, whatever the first token, begin with each token.
  matching({ query, match, lengths, first, sort, turned }) {
    const wanted = oneApostrophe(query.normalize("NFC").toLowerCase()).replace(/\s+/gu, " ").trimStart();
    const inner = ` ${wanted.trim()} `;
    const fits = !wanted.trim() ? null
      : match === "starts" ? (text) => text.startsWith(wanted)
      : match === "tokens" ? (text) => ` ${text} `.includes(inner)
      : (text) => text.includes(wanted);
    const { released, length, size } = this.tree, order = this.order(sort), found = new Uint32Array(size);
    const begun = new Uint32Array(this.tree.roots);
    let count = 0;
    for (let place = 0; place < size; place++) {
      const node = order[turned ? size - 1 - place : place];
      if (!released[node] || (lengths.size && !lengths.has(length[node]))) continue;
      if (fits && !fits(this.search[node])) continue;
      begun[this.root[node]]++;
      if (first >= 0 && this.root[node] !== first) continue;
      found[count++] = node;
    }
    return { nodes: found.subarray(0, count), begun, wanted: fits ? (match === "tokens" ? wanted.trim() : wanted) : "" };
  }
}
