// The box that completes: offers below it, taken with Enter, Tab or a click.
const OFFERS = 12;

class Completions {
  constructor(completer) {
    this.completer = completer;
    this.prompt = byId("prompt");
    this.offers = byId("offers");
    this.picked = -1;
    byId("completer").hidden = false;
    this.prompt.addEventListener("input", () => this.update());
    this.prompt.addEventListener("keydown", (event) => this.key(event));
    this.offers.addEventListener("click", (event) => {
      const offer = event.target.closest("li[data-place]");
      if (offer) this.take(Number(offer.dataset.place));
    });
    // The index is built when the box comes into view or is asked, not when the page opens.
    const watcher = new IntersectionObserver((seen) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      watcher.disconnect();
      if (!this.found) this.update(); // else somebody was quicker, and may have chosen already
    });
    watcher.observe(byId("completions"));
  }

  begin(text) {
    this.prompt.value = text;
    byId("completions").scrollIntoView();
    this.prompt.focus({ preventScroll: true });
    this.update();
  }

  update() {
    this.found = this.completer.complete(this.prompt.value, OFFERS);
    this.picked = -1;
    this.prompt.removeAttribute("aria-activedescendant");
    this.offers.replaceChildren(...this.found.map((each, place) => this.offer(each, place)));
    if (!this.found.length) this.offers.append(element("li", "none", "Nothing released goes on from here."));
    byId("offers-count").textContent = `${this.found.length} continuation${this.found.length === 1 ? "" : "s"}`;
  }

  offer({ token, context, phrases }, place) {
    const item = element("li");
    item.id = `offer-${place}`;
    item.dataset.place = place;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    if (context.length) {
      const before = item.appendChild(element("span", "before"));
      appendVisible(before.appendChild(element("bdi")), context.join(" "));
    }
    appendVisible(item.appendChild(element("bdi", "token")), token);
    item.append(element("span", "number", many(phrases)));
    return item;
  }

  key(event) {
    const size = this.found?.length || 0;
    if (event.altKey || event.ctrlKey || event.metaKey || !size) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.pick(event.key === "ArrowDown" ? (this.picked + 1) % size : (this.picked - 1 + size) % size);
    } else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey && this.picked >= 0)) {
      event.preventDefault();
      this.take(Math.max(0, this.picked));
    } else if (event.key === "Escape") {
      this.prompt.value = "";
      this.update();
    }
  }

  pick(place) {
    for (const item of this.offers.children) item.setAttribute("aria-selected", item.dataset.place === String(place));
    this.prompt.setAttribute("aria-activedescendant", `offer-${place}`);
    this.picked = place;
  }

  take(place) {
    const { token, context } = this.found[place];
    const { tokens, open } = cutPrompt(this.prompt.value, this.completer.reading, this.completer.numbers);
    // Where the last word was a beginning, the offer stands in its place.
    const begun = open && tokens.length && token.startsWith(tokens[tokens.length - 1])
      && tokens.slice(0, -1).slice(tokens.length - 1 - context.length).join("\n") === context.join("\n");
    const single = this.completer.tree.depths.length < 2;
    const kept = begun ? tokens.slice(0, -1) : tokens;
    this.prompt.value = `${[...kept, token].join(" ")}${single ? "" : " "}`;
    this.prompt.focus();
    this.update();
  }
}
