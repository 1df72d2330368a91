// What completions ask of the tree, computed when first asked for: the same orders as release/table.py.
function through(tree) {
  if (!tree.through) {
    tree.through = Uint32Array.from(tree.released);
    for (let node = tree.size - 1; node >= 0; node--)
      if (tree.parent[node] >= 0) tree.through[tree.parent[node]] += tree.through[node];
  }
  return tree.through;
}

function childWith(tree, parent, token) {
  let low = tree.first[parent], high = tree.last[parent];
  const end = high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tree.token[middle] < token) low = middle + 1;
    else high = middle;
  }
  return low < end && tree.token[low] === token ? low : -1;
}

// The place of each beginning among those of its length: most grams first, then as without its first token.
function ranks(tree) {
  if (tree.rank) return tree.rank;
  const counts = through(tree), suffix = new Int32Array(tree.size), rank = new Uint32Array(tree.size);
  let start = 0;
  tree.depths.forEach((wide, depth) => {
    const shorter = new Float64Array(wide);
    for (let node = start; node < start + wide; node++) {
      if (depth) {
        const above = suffix[tree.parent[node]];
        suffix[node] = above < 0 ? -1 : childWith(tree, depth === 1 ? tree.size : above, tree.token[node]);
        shorter[node - start] = suffix[node] < 0 ? Infinity : rank[suffix[node]];
      } else suffix[node] = 0;
    }
    const order = Uint32Array.from({ length: wide }, (_, place) => start + place);
    const before = (a, b) => {
      const [x, y] = [shorter[a - start], shorter[b - start]];
      return counts[b] - counts[a] || (x === y ? 0 : x < y ? -1 : 1) || a - b;
    };
    order.sort(before).forEach((node, place) => { rank[node] = place; });
    start += wide;
  });
  tree.rank = rank;
  return rank;
}

// The first place in the sorted words that is not below a text, by code points as UTF-8 sorts them.
function placeOf(words, text) {
  let low = 0, high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareCodePoints(words[middle], text) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compareCodePoints(one, other) {
  const size = Math.min(one.length, other.length);
  for (let at = 0; at < size; at++) {
    let a = one.charCodeAt(at), b = other.charCodeAt(at);
    if (a === b) continue;
    // Surrogates stand for code points above all others.
    if (a >= 0xd800 && b >= 0xd800) {
      a = a >= 0xe000 ? a - 0x800 : a + 0x2000;
      b = b >= 0xe000 ? b - 0x800 : b + 0x2000;
    }
    return a - b;
  }
  return one.length - other.length;
}
