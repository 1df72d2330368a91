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
  const lines = [`phrase,length${counts ? ",count" : ""}`];
  for (const node of nodes) lines.push(`${csvCell(rows.text[node])},${length[node]}${counts ? `,${counts[node]}` : ""}`);
  return `${lines.join("\r\n")}\r\n`;
}

function jsonOf(rows, nodes) {
  const { counts } = rows.tree;
  const lines = Array.from(nodes, (node) =>
    JSON.stringify(counts ? { gram: rows.tokens(node), count: counts[node] } : rows.tokens(node)));
  return `{"statement": ${JSON.stringify(FACTS.statement)},\n"grams": [\n${lines.join(",\n")}\n]}\n`;
}

function textOf(rows, nodes) {
  return Array.from(nodes, (node) => rows.text[node]).join("\n");
}
