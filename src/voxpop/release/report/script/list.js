// A list of any length of which only what can be seen exists.
class VirtualList {
  constructor(box, draw, { onPick = () => {}, onEnter = () => {}, tall = 36 } = {}) {
    Object.assign(this, { box, draw, onPick, onEnter, tall, size: 0, picked: -1, items: new Map(), empty: null });
    this.spacer = box.querySelector(".spacer");
    let waiting = false;
    box.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; this.render(); });
    });
    box.addEventListener("click", (event) => {
      const item = event.target.closest(".item");
      if (item) this.pick(Number(item.dataset.place));
    });
    box.addEventListener("dblclick", () => this.picked >= 0 && this.onEnter(this.picked));
    box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.render()).observe(box);
  }

  show(size, nothing) {
    this.size = size;
    this.nothing = nothing;
    this.picked = -1;
    this.box.removeAttribute("aria-activedescendant");
    this.spacer.style.height = `${size * this.tall}px`;
    this.box.scrollTop = 0;
    for (const item of this.items.values()) item.remove();
    this.items.clear();
    if (this.empty) this.empty.remove();
    this.empty = size ? null : this.box.appendChild(element("div", "empty", nothing));
    this.render();
  }

  render() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.tall) - 6);
    const last = Math.min(this.size, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.tall) + 6);
    for (const [place, item] of this.items)
      if (place < first || place >= last) { item.remove(); this.items.delete(place); }
    for (let place = first; place < last; place++) if (!this.items.has(place)) this.add(place);
  }

  add(place) {
    const item = element("div", "item");
    item.id = `${this.box.id}-${place}`;
    item.dataset.place = place;
    item.setAttribute("role", "option");
    item.setAttribute("aria-setsize", this.size);
    item.setAttribute("aria-posinset", place + 1);
    item.setAttribute("aria-selected", place === this.picked);
    item.style.transform = `translateY(${place * this.tall}px)`;
    this.draw(item, place);
    this.items.set(place, item);
    this.box.append(item);
  }

  pick(place, heard = true) {
    if (this.picked >= 0) this.items.get(this.picked)?.setAttribute("aria-selected", "false");
    this.picked = place;
    const top = place * this.tall, bottom = top + this.tall;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (bottom > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = bottom - this.box.clientHeight;
    this.render();
    const item = this.items.get(place);
    if (item) {
      item.setAttribute("aria-selected", "true");
      this.box.setAttribute("aria-activedescendant", item.id);
    }
    if (heard) this.onPick(place);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.size) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.tall) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.picked >= 0) {
      event.preventDefault();
      this.onEnter(this.picked);
    } else if (event.key in steps) {
      event.preventDefault();
      this.pick(Math.min(this.size - 1, Math.max(0, this.picked + steps[event.key])));
    }
  }
}
