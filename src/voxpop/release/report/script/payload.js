// Unpack the grams: deflated arrays in base64, as payload.py packs them.
const FACTS = JSON.parse(document.getElementById("facts").textContent);

async function unpack() {
  const packed = atob(document.getElementById("grams").textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const stream = new Uint8Array(await new Response(inflated).arrayBuffer());
  if (stream.length !== FACTS.grams.bytes) throw new Error("the list in this page is damaged");
  return treeOf(stream, FACTS.grams);
}

// All beginnings of grams in one row, length by length: token, parent, first and last child of each.
function treeOf(stream, shape) {
  let at = shape.letters;
  const planes = (size) => {
    const numbers = new Uint32Array(size);
    for (let plane = 0; plane < 4; plane++, at += size)
      for (let place = 0; place < size; place++) numbers[place] += stream[at + place] * 2 ** (8 * plane);
    return numbers;
  };
  const words = wordsOf(stream, planes(shape.words));
  const size = shape.depths.reduce((sum, each) => sum + each, 0);
  const tree = {
    words, size, depths: shape.depths, roots: shape.depths[0] || 0,
    token: new Uint32Array(size), parent: new Int32Array(size).fill(-1), length: new Uint8Array(size),
    first: new Uint32Array(size + 1), last: new Uint32Array(size + 1), released: new Uint8Array(size), counts: null,
  };
  let above = 0, here = 0, width = 1;
  shape.depths.forEach((wide, depth) => {
    const children = planes(width), steps = planes(wide), released = planes(wide);
    let node = here;
    for (let up = 0; up < width; up++) {
      const parent = depth ? above + up : size;
      tree.first[parent] = node;
      for (let child = 0, token = 0; child < children[up]; child++, node++) {
        token = child ? token + steps[node - here] : steps[node - here];
        tree.token[node] = token;
        tree.parent[node] = depth ? parent : -1;
        tree.length[node] = depth + 1;
        tree.released[node] = released[node - here];
      }
      tree.last[parent] = node;
    }
    above = here; here += wide; width = wide;
  });
  for (let node = above; node < size; node++) tree.first[node] = tree.last[node] = size;
  if (shape.counts) tree.counts = planes(size);
  return tree;
}

function wordsOf(stream, sizes) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const words = new Array(sizes.length);
  let at = 0;
  for (let number = 0; number < sizes.length; at += sizes[number++])
    words[number] = decoder.decode(stream.subarray(at, at + sizes[number]));
  return words;
}
