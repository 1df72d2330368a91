// The grams as rows: their texts, what matches a search, and in which order.
class Rows {
  constructor(tree) {
    this.tree = tree;
    this.text = new Array(tree.size);
    this.spaced = tree.words.some((word) => /\s/u.test(word));
    for (let node = 0; node < tree.size; node++) {
      const word = tree.words[tree.token[node]];
      this.text[node] = tree.parent[node] < 0 ? word : `${this.text[tree.parent[node]]} ${word}`;
    }
    const plain = tree.words.every((word) => word === word.toLowerCase());
    this.search = plain ? this.text : this.text.map((each) => each.toLowerCase());
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

  order(key) {
    if (!this.orders.has(key)) this.orders.set(key, this.computedOrder(key));
    return this.orders.get(key);
  }

  computedOrder(key) {
    const { tree } = this;
    if (key === "text") return this.alphabetical();
    const canonical = Uint32Array.from({ length: tree.size }, (_, node) => node);
    if (key === "length") return canonical;
    const number = key === "count" ? (node) => tree.counts[node] : (node) => this.longer(node);
    return canonical.sort((a, b) => number(b) - number(a) || a - b);
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

  // The released grams that fit, in order.
  matching({ query, match, lengths, first, sort, turned }) {
    const wanted = query.normalize("NFC").toLowerCase().replace(/\s+/gu, " ").trimStart();
    const inner = ` ${wanted.trim()} `;
    const fits = !wanted.trim() ? null
      : match === "starts" ? (text) => text.startsWith(wanted)
      : match === "tokens" ? (text) => ` ${text} `.includes(inner)
      : (text) => text.includes(wanted);
    const { released, length, size } = this.tree, order = this.order(sort), found = new Uint32Array(size);
    let count = 0;
    for (let place = 0; place < size; place++) {
      const node = order[turned ? size - 1 - place : place];
      if (!released[node] || (lengths.size && !lengths.has(length[node]))) continue;
      if (first >= 0 && this.root[node] !== first) continue;
      if (fits && !fits(this.search[node])) continue;
      found[count++] = node;
    }
    return { nodes: found.subarray(0, count), wanted: fits ? (match === "tokens" ? wanted.trim() : wanted) : "" };
  }
}
