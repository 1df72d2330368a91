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
