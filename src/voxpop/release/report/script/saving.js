// Copy and download: everything is made in this page.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", "unseen");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function download(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = element("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// RFC 4180. A cell that a spreadsheet would compute gets an apostrophe in front; JSON keeps it as it is.
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

function csvOf(rows, nodes) {
  const { counts, length } = rows.tree;
  const keyed = FACTS.keys.length > 1;
  const head = keyed ? FACTS.keys.map(csvCell) : ["phrase", "length"];
  const lines = [[...head, ...(counts ? ["count"] : [])].join(",")];
  for (const node of nodes) {
    const cells = keyed ? keyParts(rows.text[node]).map(csvCell) : [csvCell(rows.text[node]), length[node]];
    lines.push([...cells, ...(counts ? [counts[node]] : [])].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

function jsonOf(rows, nodes) {
  const { counts } = rows.tree;
  const gram = (node) => (FACTS.keys.length > 1 ? keyParts(rows.text[node]) : rows.tokens(node));
  const lines = Array.from(nodes, (node) =>
    JSON.stringify(counts ? { gram: gram(node), count: counts[node] } : gram(node)));
  return `{"statement": ${JSON.stringify(FACTS.statement)},\n"grams": [\n${lines.join(",\n")}\n]}\n`;
}

function textOf(rows, nodes) {
  return Array.from(nodes, (node) => rows.text[node]).join("\n");
}
