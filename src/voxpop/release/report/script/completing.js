// Continuations by the longest released context, with back-off: the same answers as release/table.py.
class Completer {
  constructor(tree, reading) {
    this.tree = tree;
    this.reading = reading;
    this.numbers = new Map(tree.words.map((word, number) => [word, number]));
  }

  complete(text, limit) {
    if (!this.tree.size) return [];
    const { tokens, open } = cutPrompt(text, this.reading, this.numbers);
    const numbers = tokens.map((token) => this.numbers.get(token) ?? -1);
    const whole = () => this.continued(numbers, null, limit);
    const begun = () => this.continued(numbers.slice(0, -1), this.span(tokens[tokens.length - 1]), limit);
    const readings = !open ? [whole] : this.stands(numbers.slice(-2)) ? [whole, begun] : [begun, whole];
    for (const read of readings) {
      const found = read();
      if (found.length) return found;
    }
    return [];
  }

  stands(numbers) {
    const last = numbers[numbers.length - 1];
    return last >= 0 && (numbers.length < 2 || numbers[0] < 0 || this.walk(numbers) >= 0);
  }

  span(beginning) {
    return [placeOf(this.tree.words, beginning), placeOf(this.tree.words, beginning + "\u{10ffff}")];
  }

  continued(numbers, span, limit) {
    const found = [], seen = new Set();
    const longest = Math.min(numbers.length, this.tree.depths.length - 1);
    const shortest = span || !numbers.length ? 0 : 1;
    for (let size = longest; size >= shortest && found.length < limit; size--) {
      const context = numbers.slice(numbers.length - size);
      const parent = this.walk(context);
      if (parent < 0) continue;
      for (const node of this.best(parent, span)) {
        if (found.length === limit) break;
        const token = this.tree.token[node];
        if (seen.has(token)) continue;
        seen.add(token);
        const before = context.map((number) => this.tree.words[number]);
        found.push({ token: this.tree.words[token], context: before, phrases: through(this.tree)[node] });
      }
    }
    return found;
  }

  walk(numbers) {
    let node = this.tree.size;
    for (const number of numbers) {
      node = number < 0 ? -1 : childWith(this.tree, node, number);
      if (node < 0) return -1;
    }
    return node;
  }

  best(parent, span) {
    const rank = ranks(this.tree), nodes = [];
    for (let node = this.tree.first[parent]; node < this.tree.last[parent]; node++)
      if (!span || (this.tree.token[node] >= span[0] && this.tree.token[node] < span[1])) nodes.push(node);
    return nodes.sort((a, b) => rank[a] - rank[b]);
  }
}
