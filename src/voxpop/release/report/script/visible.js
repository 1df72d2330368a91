// Show tokens so that nothing hides: what cannot be seen, or would turn the line around, is written as its code point.
const UNSEEN = /(?<!\p{Extended_Pictographic}\ufe0f?)\u200d|[\p{Cc}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u2000-\u200a\u202f\u205f\u3000]|(?!\u200d)\p{Cf}/gu;

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function escapeNode(letter) {
  const code = letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return element("span", "escape", `U+${code}`);
}

// A token of nothing, or of spaces alone, is written so that it can be seen.
function isBlank(token) {
  return !token.trim();
}

function appendBlank(parent, token) {
  if (!token) parent.append(element("span", "escape", "empty"));
  for (const letter of token) parent.append(escapeNode(letter));
}

// Append text to an element, marking the part from `from` to `to` where it is given.
function appendVisible(parent, text, from = -1, to = -1) {
  const put = (start, end, into) => {
    const part = text.slice(start, end);
    let at = 0;
    for (const found of part.matchAll(UNSEEN)) {
      if (found.index > at) into.append(part.slice(at, found.index));
      into.append(escapeNode(found[0]));
      at = found.index + found[0].length;
    }
    if (at < part.length) into.append(part.slice(at));
  };
  if (isBlank(text)) return appendBlank(parent, text);
  if (from < 0) return put(0, text.length, parent);
  put(0, from, parent);
  const marked = element("mark");
  put(from, to, marked);
  parent.append(marked);
  put(to, text.length, parent);
}
