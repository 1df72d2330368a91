// Unpack the grams: deflated JSON in base64, as `payload_of` packs them.
const FACTS = JSON.parse(document.getElementById("facts").textContent);

async function unpack() {
  const packed = atob(document.getElementById("grams").textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return treeOf(JSON.parse(await new Response(inflated).text()));
}

// All beginnings of grams in one row, length by length: token, parent, first and last child of each.
function treeOf({ words, depths }) {
  const sizes = depths.map(([, tokens]) => tokens.length);
  const size = sizes.reduce((sum, each) => sum + each, 0);
  const tree = {
    words, size, depths: sizes, roots: sizes[0] || 0, counts: FACTS.grams.counts ? new Float64Array(size) : null,
    known: FACTS.grams.known ? new Uint8Array(size) : null,
    token: new Uint32Array(size), parent: new Int32Array(size).fill(-1), length: new Uint8Array(size),
    first: new Uint32Array(size + 1), last: new Uint32Array(size + 1), released: new Uint8Array(size),
  };
  let above = 0, here = 0, width = 1;
  depths.forEach(([children, tokens, numbers], depth) => {
    let node = here;
    for (let up = 0; up < width; up++) {
      const parent = depth ? above + up : size;
      tree.first[parent] = node;
      for (let child = 0; child < children[up]; child++, node++) {
        tree.token[node] = tokens[node - here];
        tree.parent[node] = depth ? parent : -1;
        tree.length[node] = depth + 1;
        tree.released[node] = numbers[node - here] >= 0;
        // With counts and marks of known items, a number is twice the count plus the mark.
        const number = Math.max(0, numbers[node - here]);
        if (tree.counts) tree.counts[node] = tree.known ? Math.floor(number / 2) : number;
        if (tree.known) tree.known[node] = number % 2;
      }
      tree.last[parent] = node;
    }
    above = here; here += tokens.length; width = tokens.length;
  });
  for (let node = above; node < size; node++) tree.first[node] = tree.last[node] = size;
  return tree;
}
