// Two ranked lists of one query side by side, with a grade for every document.
//
// data: as `page_reading.py` makes it. A grade shows at once; Python stores it and confirms it by
// its number. Until then it goes along with every event, as a newer event may replace an older one.
const SVG = "http://www.w3.org/2000/svg";
const MISSED = 2; // the list below the two sides
const ARROWS = { "-1": "▼", 0: "=", 1: "▲" };

function make(name, attributes = {}, ...inside) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...inside);
  return node;
}

// Texts by turns plain and marked.
const marked = (pieces) => pieces.map((text, at) => (at % 2 ? make("mark", {}, text) : text));

class Pane {
  constructor(root) {
    this.root = root;
    this.pending = [];
    this.undone = [];
    this.texts = new Map();
    this.drawn = {};
    this.cards = [];
    // A step to another query is announced by its title.
    this.title = make("h2", { dir: "auto", "aria-live": "polite" });
    this.chips = make("ul", { class: "chips", role: "list" });
    for (const again of ["pointerover", "focusin"])
      this.chips.addEventListener(again, () => this.chips.classList.remove("dismissed"));
    this.effect = make("p", { class: "effect", role: "status" });
    this.sides = [0, 1].map(() => make("ol", { role: "list" }));
    this.pickers = [0, 1].map((side) => make("select", { onchange: () => this.pick(side) }));
    this.gap = document.createElementNS(SVG, "svg");
    this.gap.setAttribute("aria-hidden", "true");
    const [left, right] = [0, 1].map((side) =>
      make("section", { class: `side${side}` }, this.pickers[side], this.sides[side]),
    );
    this.columns = make("div", { class: "columns" }, left, this.gap, right);
    this.missed = make("section");
    root.append(this.title, this.chips, this.effect, this.columns, this.missed);
    this.watch = new ResizeObserver(() => this.lines());
    this.press = (event) => this.key(event);
  }

  show(data, send) {
    const other = this.data?.query !== data.query;
    const inside = this.focused();
    this.data = data;
    this.send = send;
    this.given = new Map(data.docs.map(([doc], at) => [doc, data.given[at]]));
    this.pending = this.pending.filter((each) => each.number > data.heard);
    if (other) {
      this.undone = [];
      this.texts.clear();
      this.at = null;
    }
    this.root.style.setProperty("--better", data.colours[0]);
    this.root.style.setProperty("--worse", data.colours[1]);
    this.redraw("title", data.title, () => [data.title]);
    this.redraw("chips", [data.values, data.chips], () => this.facts());
    const lists = [data.query, data.docs, data.sides, data.missed, data.systems, data.grades];
    if (this.changes("lists", lists)) this.lists();
    if (data.whole) this.take(data.whole);
    if (!this.at) this.move(this.next(-1));
    if (inside && !this.focused()) this.focus();
    this.paint();
    addEventListener("keydown", this.press);
    this.watch.observe(this.columns);
    document.documentElement.dataset.rankdashQuery = data.query;
    dispatchEvent(new CustomEvent("rankdash:query", { detail: data.query }));
    // What was lost under way is sent again, but not for ever.
    if (this.pending.some((each) => each.sent < 3)) this.say({});
  }

  leave() {
    removeEventListener("keydown", this.press);
    this.watch.disconnect();
  }

  changes(name, seen) {
    const now = JSON.stringify(seen);
    const changed = this.drawn[name] !== now;
    this.drawn[name] = now;
    return changed;
  }

  redraw(name, seen, draw) {
    if (this.changes(name, seen)) this[name].replaceChildren(...draw());
  }

  say(event) {
    for (const each of this.pending) each.sent += 1;
    const pending = this.pending.map((each) => [each.number, each.query, each.doc, each.grade]);
    this.send({ ...event, pending });
  }

  // The values as a dumbbell, and chips with their sentences.
  facts() {
    const { values, chips } = this.data;
    const drawn = values ? [[values.text, values.hint, this.dumbbell(values)]] : [];
    return [...drawn, ...chips].map(([text, hint, ...marks], at) => {
      if (!hint) return make("li", { class: "chip" }, text);
      const tip = make("span", { role: "tooltip", id: `tip${at}` }, hint);
      const named = { tabindex: 0, "aria-label": text, "aria-describedby": tip.id };
      return make("li", { class: "chip", ...named }, ...marks, text, tip);
    });
  }

  dumbbell({ before, after, best, better }) {
    const place = (kind, at, wide = 0) =>
      make("i", { class: kind, style: `left:${at * 100}%;width:${wide * 100}%` });
    const marks = [
      place("bar", Math.min(before, after), Math.abs(after - before)),
      place(best === null ? "" : "best", best),
      place("dot from", before),
      place("dot", after),
    ];
    return make("span", { class: `dumbbell m${better}`, "aria-hidden": "true" }, ...marks);
  }

  lists() {
    const { data } = this;
    this.cards = [];
    this.sides.forEach((list, side) => {
      const rows = data.sides[side];
      const cards = rows.map(([doc, move, text], at) => {
        const places = [make("b", {}, String(at + 1)), this.moved(move, text)];
        return this.card(doc, side, places, at + 1 === data.k ? " cut" : "");
      });
      if (data.k && data.k <= rows.length) cards[data.k - 1].dataset.cut = data.words.cut;
      list.replaceChildren(...cards);
      if (!rows.length) list.replaceChildren(make("li", { class: "quiet" }, data.words.empty));
      const picker = this.pickers[side];
      const options = data.systems.map(([id, name]) => make("option", { value: id }, name));
      picker.replaceChildren(...options);
      picker.value = data.shown[side];
      picker.setAttribute("aria-label", data.words.side[side]);
      list.setAttribute("aria-label", picker.selectedOptions[0]?.textContent);
    });
    const below = data.missed.map(([doc, places]) =>
      this.card(doc, MISSED, [make("small", {}, places)], ""),
    );
    const more = data.words.more ? [make("p", { class: "quiet" }, data.words.more)] : [];
    const listed = [make("h3", {}, data.words.missed), make("ul", { role: "list" }, ...below)];
    this.missed.replaceChildren(...(below.length ? listed : []), ...more);
    // Each document once: of the system on the right first, then what only the left one shows.
    const order = [1, 0, MISSED].flatMap((side) => this.cards.filter((card) => card.side === side));
    const seen = new Set();
    this.order = order.filter((card) => !seen.has(card.doc) && seen.add(card.doc));
    this.at = this.order.find((card) => card.doc === this.at?.doc);
  }

  moved(move, text) {
    const named = { role: "img", "aria-label": this.data.words.move[move + 1] };
    const arrow = make("i", { class: `arrow m${move}`, ...named }, ARROWS[move]);
    return make("small", {}, arrow, text);
  }

  card(place, side, places, kind) {
    const { docs, grades, words } = this.data;
    const [doc, title, snippet] = docs[place];
    const card = { doc, side };
    const id = `title${this.cards.length}`;
    card.label = make(
      "button",
      {
        id,
        class: snippet.length ? "title" : "title text",
        "aria-expanded": "false",
        onfocus: () => this.move(card),
      },
      ...marked(title),
    );
    card.squares = make("span", { class: "squares", role: "img" });
    const named = { role: "group", "aria-labelledby": id };
    card.whole = make("div", { class: "whole", hidden: "", tabindex: 0, ...named });
    const bar = grades.map((grade) =>
      make("button", { onclick: () => this.give(card, grade) }, grade),
    );
    const tools = { role: "toolbar", "aria-label": words.label };
    card.bar = make("span", { class: "grades", ...tools }, ...bar);
    card.row = make(
      "li",
      { class: `doc${kind}`, dir: "auto", onclick: (event) => this.click(event, card) },
      make("span", { class: "places" }, ...places),
      card.label,
      card.squares,
      ...(snippet.length ? [make("p", { class: "snippet" }, ...marked(snippet))] : []),
      card.whole,
      ...(bar.length ? [card.bar] : []),
    );
    this.cards.push(card);
    return card.row;
  }

  // What is graded, what is current, and what became of it.
  paint() {
    const { words, names, effect, threshold } = this.data;
    for (const { doc, row, squares, bar } of this.cards) {
      const grade = this.grade(doc);
      [squares.textContent, squares.title] = names[grade];
      squares.setAttribute("aria-label", squares.title);
      row.classList.toggle("relevant", grade && Number(grade) >= threshold);
      row.classList.toggle("current", this.at?.doc === doc);
      // One stop of the Tab key; the arrow keys lead to the others.
      const stop = [...bar.children].find((each) => each.textContent === grade) ?? bar.firstChild;
      for (const button of bar.children) {
        button.tabIndex = button === stop ? 0 : -1;
        button.ariaPressed = button.textContent === grade;
        button.title = button.ariaLabel = names[button.textContent][1];
      }
    }
    const text = this.pending.length ? words.saving : effect;
    const undone = this.undone.length > 0;
    this.redraw("effect", [text, undone, words.keys], () => {
      if (!text) return [make("span", { class: "quiet" }, words.keys)];
      return undone ? [text, make("button", { onclick: () => this.undo() }, words.undo)] : [text];
    });
    this.lines();
  }

  // A line between equal documents, as long as the columns stand side by side.
  lines() {
    const box = this.gap.getBoundingClientRect();
    const paths = [];
    if (box.width) {
      const middle = (card) => card.row.getBoundingClientRect().top - box.top + 24;
      const right = new Map(this.cards.filter((c) => c.side === 1).map((c) => [c.doc, c]));
      for (const card of this.cards.filter((each) => each.side === 0 && right.has(each.doc))) {
        const [y, end] = [middle(card), middle(right.get(card.doc))];
        const path = document.createElementNS(SVG, "path");
        const half = box.width / 2;
        path.setAttribute("d", `M0 ${y}C${half} ${y} ${half} ${end} ${box.width} ${end}`);
        const move = this.data.sides[0].find(([at]) => this.data.docs[at][0] === card.doc)[1];
        path.setAttribute("class", `line m${move} ${card.row.className.replace("doc", "")}`);
        paths.push(path);
      }
    }
    this.gap.replaceChildren(...paths);
  }

  grade(doc) {
    const mine = (each) => each.query === this.data.query && each.doc === doc;
    return this.pending.findLast(mine)?.grade ?? this.given.get(doc);
  }

  give(card, grade, undo = false) {
    if (!undo) this.undone.push([card.doc, this.grade(card.doc)]);
    const number = Math.max(Date.now(), (this.number ?? 0) + 1);
    this.number = number;
    this.pending.push({ number, query: this.data.query, doc: card.doc, grade, sent: 0 });
    this.say({});
    this.move(undo ? card : this.next(this.order.findIndex((each) => each.doc === card.doc)));
    this.focus();
  }

  undo() {
    const [doc, grade] = this.undone.pop() ?? [];
    const card = this.order.find((each) => each.doc === doc);
    // A label that is no grade was uploaded, and "" gives it back.
    if (card) this.give(card, this.data.grades.includes(grade) ? grade : "", true);
  }

  // The next document without a grade, from one of the order on; else that one, or the first.
  next(from) {
    const after = [...this.order.slice(from + 1), ...this.order.slice(0, from + 1)];
    return after.find((card) => this.grade(card.doc) === "") ?? this.order[Math.max(from, 0)];
  }

  move(card) {
    if (!card || this.at === card) return;
    this.at = card;
    this.paint();
  }

  focus() {
    this.at?.label.focus({ preventScroll: true });
    this.at?.row.scrollIntoView({ block: "nearest" });
  }

  focused() {
    return this.root.contains(this.root.getRootNode().activeElement);
  }

  pick(side) {
    const show = this.pickers.map((each) => each.value);
    // The other side shows the system that made room.
    if (show[0] === show[1]) show[1 - side] = this.data.shown[side];
    this.say({ show });
  }

  click(event, card) {
    if (event.target.closest(".grades, .whole") || String(getSelection())) return;
    const opens = card.whole.hidden;
    card.whole.hidden = !opens;
    card.row.classList.toggle("open", opens);
    card.label.setAttribute("aria-expanded", String(opens));
    this.move(card);
    if (!this.texts.has(card.doc)) this.say({ open: [this.data.query, card.doc, 0] });
    else this.fill(card);
  }

  // A part of a whole text: its document, where it starts and ends, its pieces, its facts.
  take({ doc, start, end, pieces, facts, more }) {
    const text = this.texts.get(doc) ?? { pieces: [], end: 0 };
    if (start !== text.end) return;
    this.texts.set(doc, { pieces: [...text.pieces, pieces], end, facts, more });
    this.cards.filter((card) => card.doc === doc).forEach((card) => this.fill(card));
  }

  fill(card) {
    const { pieces, end, facts, more } = this.texts.get(card.doc) ?? { pieces: [] };
    if (!pieces.length) return;
    const open = () => this.say({ open: [this.data.query, card.doc, end] });
    const next = more ? [make("button", { onclick: open }, more)] : [];
    const quiet = make("p", { class: "quiet" }, facts);
    const inside = card.whole.contains(this.root.getRootNode().activeElement);
    card.whole.replaceChildren(make("p", {}, ...pieces.flatMap(marked)), ...next, quiet);
    if (inside) card.whole.focus();
  }

  key(event) {
    if (event.key === "Escape") this.chips.classList.add("dismissed");
    const within = event.composedPath()[0];
    const typing = within.closest?.("input, textarea, select, [contenteditable], [role=dialog]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !this.order?.length) return;
    const { key } = event;
    const { grades } = this.data;
    const beside = { ArrowLeft: "previousSibling", ArrowRight: "nextSibling" }[key];
    if (beside && within.closest?.(".grades")) within[beside]?.focus();
    else if (key === "[" || key === "]") {
      const at = this.order.findIndex((card) => card.doc === this.at?.doc);
      this.move(this.order[at + (key === "]" ? 1 : -1)]);
      this.focus();
    } else if (grades.includes(key)) this.give(this.at, key);
    else if (key.toLowerCase() === "z" && grades.length) this.undo();
    else return;
    event.preventDefault();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  root.pane ??= new Pane(root);
  root.pane.show(data, (event) => setTriggerValue("event", event));
  return () => root.pane.leave();
}
