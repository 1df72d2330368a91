// On paper everything is open and drawn for its width; afterwards it is as it was.
function startPrinting() {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.firsts)")];
    for (const each of opened) each.open = true;
    for (const redraw of redraws) redraw(true);
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    for (const redraw of redraws) redraw(false);
  });
}

// About one page. Text nodes only, as in the list.
const MOST_PRINTED = 300;

// Write the grams that the list shows to the paragraph for paper: all, or some that are evenly spaced.
function printRows(texts, nodes) {
  const size = Math.min(MOST_PRINTED, nodes.length);
  if (!size) return;
  const list = element("span");
  for (let at = 0; at < size; at++) {
    if (at) list.append(" · ");
    appendVisible(list, texts[nodes[Math.floor((at * nodes.length) / size)]]);
  }
  const some = size < nodes.length ? `${many(size)} of ${many(nodes.length)}, evenly spaced: ` : "";
  byId("printed").replaceChildren(some, list);
}
