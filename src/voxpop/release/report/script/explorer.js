// The list of grams: search, lengths, first tokens, order, copy and download.
const byId = (id) => document.getElementById(id);
const many = (number) => number.toLocaleString("en-US");
const NOUN = (number) => FACTS.nouns[number === 1 ? 0 : 1];

class Explorer {
  constructor(rows) {
    this.rows = rows;
    this.state = { query: "", match: "contains", lengths: new Set(), first: -1, sort: FACTS.lengths.length > 1 ? "length" : "text", turned: false };
    this.found = { nodes: new Uint32Array(0), begun: new Uint32Array(rows.tree.roots), wanted: "" };
    this.total = rows.tree.released.reduce((sum, each) => sum + each, 0);
    byId("explorer-panel").hidden = false;
    this.list = new VirtualList(byId("list"), (item, place) => this.draw(item, this.found.nodes[place]), {
      onPick: (place) => this.picked(this.found.nodes[place]),
      onEnter: (place) => this.copyOne(this.found.nodes[place]),
    });
    if (this.total < 12) byId("list").style.height = `${36 * Math.max(4, this.total) + 2}px`;
    this.lengths();
    this.firsts();
    this.listen();
    this.set({});
  }

  set(change) {
    Object.assign(this.state, change);
    this.update();
    if (this.arrange && !("first" in change)) this.arrange();
  }

  update() {
    this.found = this.rows.matching(this.state);
    const shown = this.found.nodes.length;
    this.list.show(shown, "Nothing released fits. A missing phrase may have any number of users.");
    this.picked(-1);
    byId("count").textContent =
      shown === this.total ? `${many(shown)} ${NOUN(shown)}` : `${many(shown)} of ${many(this.total)} ${NOUN(this.total)}`;
    for (const button of document.querySelectorAll("[data-sort]")) {
      const on = button.dataset.sort === this.state.sort;
      button.classList.toggle("on", on);
      button.setAttribute("aria-pressed", on);
      button.querySelector("i").textContent = on ? (this.state.turned ? "▼" : "▲") : "";
    }
    const chip = byId("chosen-first");
    chip.hidden = this.state.first < 0;
    chip.textContent = "";
    if (this.state.first >= 0) {
      chip.append("begins with ");
      appendVisible(chip.appendChild(element("bdi")), this.rows.text[this.state.first]);
      chip.append(" ✕");
      chip.setAttribute("aria-label", `Begins with ${this.rows.text[this.state.first]}: show all again`);
    }
  }

  draw(item, node) {
    const phrase = item.appendChild(element("bdi", "phrase"));
    this.write(phrase, node, this.found.wanted);
    if (this.rows.tree.counts) item.append(element("span", "number", many(this.rows.tree.counts[node])));
    if (this.rows.tree.known?.[node]) item.append(element("span", "number", "on the list"));
    if (FACTS.lengths.length < 2) return;
    item.append(element("span", "number", String(this.rows.tree.length[node])));
    const longer = this.rows.longer(node);
    item.append(element("span", "number", longer ? many(longer) : "–"));
  }

  write(into, node, wanted = "") {
    const text = this.rows.text[node], search = this.rows.search[node];
    if (FACTS.keys.length > 1) {
      into.classList.add("cells");
      for (const part of keyParts(text)) appendVisible(into.appendChild(element("bdi", "cell")), part);
      return;
    }
    if (this.rows.spaced) {
      this.rows.tokens(node).forEach((token, place) => {
        if (place) into.append(element("span", "gap", "·"));
        appendVisible(into, token);
      });
      return;
    }
    const at = wanted && search.length === text.length ? search.indexOf(wanted) : -1;
    if (at < 0) appendVisible(into, text);
    else appendVisible(into, text, at, at + wanted.length);
  }

  picked(node = -1) {
    const box = byId("picked-phrase");
    box.textContent = "";
    box.classList.toggle("none", node < 0);
    if (node < 0) box.append(`Choose one to copy it${byId("complete-one") ? " or to go on from it" : ""}.`);
    else this.write(box.appendChild(element("bdi")), node);
    for (const id of ["copy-one", "complete-one"]) if (byId(id)) byId(id).disabled = node < 0;
    this.node = node;
  }

  async copyOne(node) {
    tell((await copyText(this.rows.text[node])) ? "Copied." : "The browser refused to copy.");
  }

  lengths() {
    const box = byId("lengths");
    box.hidden = FACTS.lengths.length < 2;
    const all = box.appendChild(element("button", "", "all lengths"));
    const buttons = FACTS.lengths.map(({ length, released }) => {
      const button = box.appendChild(element("button", "", String(length)));
      button.title = `${many(released)} of ${length} token${length === 1 ? "" : "s"}`;
      button.setAttribute("aria-label", button.title);
      button.addEventListener("click", () => {
        const lengths = new Set(this.state.lengths);
        if (!lengths.delete(length)) lengths.add(length);
        this.set({ lengths });
        mark();
      });
      return [length, button];
    });
    const mark = () => {
      all.setAttribute("aria-pressed", !this.state.lengths.size);
      for (const [length, button] of buttons) button.setAttribute("aria-pressed", this.state.lengths.has(length));
    };
    for (const button of box.children) button.type = "button";
    all.addEventListener("click", () => { this.set({ lengths: new Set() }); mark(); });
    mark();
  }

  firsts() {
    const { tree } = this.rows;
    byId("firsts").hidden = tree.depths.length < 2;
    if (tree.depths.length < 2) return;
    if (matchMedia("(max-width: 860px)").matches) byId("firsts").open = false;
    let order = [], chosen = "many";
    const list = new VirtualList(byId("first-list"), (item, place) => {
      appendVisible(item.appendChild(element("bdi", "phrase")), this.rows.text[order[place]]);
      item.append(element("span", "number", many(this.found.begun[order[place]])));
    }, { onPick: (place) => this.set({ first: order[place] }) });
    // Numbers are of what the search and the lengths leave.
    this.arrange = () => {
      const { begun } = this.found, kind = (root) => this.rows.kind(root);
      order = Array.from({ length: tree.roots }, (_, root) => root).filter((root) => begun[root]);
      if (chosen === "text") order.sort((a, b) => kind(a) - kind(b) || a - b);
      else order.sort((a, b) => begun[b] - begun[a] || kind(a) - kind(b) || a - b);
      for (const each of document.querySelectorAll("[data-firsts]"))
        each.setAttribute("aria-pressed", each.dataset.firsts === chosen);
      list.show(order.length, "Nothing begins so.");
      const place = order.indexOf(this.state.first);
      if (place >= 0) list.pick(place, false);
    };
    for (const each of document.querySelectorAll("[data-firsts]"))
      each.addEventListener("click", () => { chosen = each.dataset.firsts; this.arrange(); });
    byId("chosen-first").addEventListener("click", () => {
      this.set({ first: -1 });
      list.pick(-1, false);
      byId("search").focus();
    });
  }

  // What is found must be seen: the search goes to the top where the list would begin too low.
  keepInView() {
    const { top } = byId("search").getBoundingClientRect(), list = byId("list").getBoundingClientRect();
    if (top < 60 || list.top + 5 * 36 > innerHeight) byId("explorer-panel").scrollIntoView({ block: "start", behavior: "instant" });
  }

  listen() {
    const search = byId("search");
    search.addEventListener("input", () => { this.set({ query: search.value }); this.keepInView(); });
    search.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" && this.list.size) {
        event.preventDefault();
        this.list.box.focus();
        this.list.pick(0);
      } else if (event.key === "Escape") {
        search.value = "";
        this.set({ query: "" });
      }
    });
    for (const each of document.querySelectorAll("[data-match]"))
      each.addEventListener("click", () => {
        for (const other of document.querySelectorAll("[data-match]")) other.setAttribute("aria-pressed", other === each);
        this.set({ match: each.dataset.match });
      });
    for (const each of document.querySelectorAll("[data-sort]"))
      each.addEventListener("click", () => {
        const again = each.dataset.sort === this.state.sort;
        this.set({ sort: each.dataset.sort, turned: again && !this.state.turned });
      });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        search.focus({ preventScroll: true });
        search.select();
        this.keepInView();
      }
    });
    byId("copy-one").addEventListener("click", () => this.copyOne(this.node));
    byId("copy-all").addEventListener("click", async () => {
      const { nodes } = this.found;
      const done = await copyText(textOf(this.rows, nodes));
      tell(done ? `Copied ${many(nodes.length)} ${NOUN(nodes.length)}.` : "The browser refused to copy.");
    });
    const save = (id, ending, kind, make) => byId(id).addEventListener("click", () => {
      const { nodes } = this.found;
      download(`${FACTS.nouns[1]}.${ending}`, kind, make(this.rows, nodes));
      tell(`Saved ${many(nodes.length)} ${NOUN(nodes.length)}.`);
    });
    save("save-csv", "csv", "text/csv;charset=utf-8", csvOf);
    save("save-json", "json", "application/json", jsonOf);
    save("save-text", "txt", "text/plain;charset=utf-8", textOf);
  }
}

function tell(text) {
  byId("told").textContent = text;
  clearTimeout(tell.waiting);
  tell.waiting = setTimeout(() => { byId("told").textContent = ""; }, 4000);
}
