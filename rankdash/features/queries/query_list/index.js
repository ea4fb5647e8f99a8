// The list of queries: the rows of a window, and room above and below for the others.
// The reading pane announces the open query by "rankdash:query"; a row is opened by
// "rankdash:open", which a component beside the pane passes to Python.
const HIGH = 52; // pixels of a row, as in style.css
const NEAR = 20; // rows left beyond those in sight when the next window is requested

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const list = (root.list ??= new List(root));
  list.request = (first) => setTriggerValue("event", { window: first });
  list.update(data);
  const select = (event) => list.select(event.detail);
  window.addEventListener("rankdash:query", select);
  return () => window.removeEventListener("rankdash:query", select);
}

class List {
  constructor(root) {
    this.box = made("div", "list", root);
    this.room = made("div", "room", this.box);
    this.room.role = "none";
    this.box.role = "listbox";
    this.box.tabIndex = 0;
    this.active = -1;
    this.box.addEventListener("scroll", () => this.scrolled());
    this.box.addEventListener("keydown", (event) => this.pressed(event));
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.open(Number(row.dataset.place));
    });
    this.box.addEventListener("focus", () => {
      const places = [this.placeOf(this.selected), this.active, this.inSight()[0]];
      this.activate(places.find((place) => place >= 0));
    });
  }

  update(data) {
    const text = JSON.stringify(data);
    if (text === this.text) return;
    const other = this.data?.key !== data.key;
    this.text = text;
    this.data = data;
    this.requested = null;
    this.selected = document.documentElement.dataset.rankdashQuery;
    this.box.ariaLabel = data.words.list;
    data.colours.forEach((colour, n) => this.box.style.setProperty(`--change-${n}`, colour));
    this.room.style.height = `${data.total * HIGH}px`;
    this.room.replaceChildren(...data.rows.map((row, n) => this.row(row, data.first + n)));
    if (other) this.active = -1;
    this.mark();
    if (other || this.pending) this.reveal(this.placeOf(this.selected));
    this.check();
  }

  row([id, text, before, after, change, outcome, word], place) {
    const { colours, total, words } = this.data;
    const row = made("div", "row");
    Object.assign(row, { role: "option", id: `query-${place}`, ariaSetSize: total });
    row.ariaPosInSet = place + 1;
    row.dataset.place = place;
    row.style.top = `${place * HIGH}px`;
    made("div", "text", row, text).title = text;
    const line = made("div", "line", row);
    const axis = made("span", "axis", line);
    if (before !== null && after !== null) {
      axis.style.setProperty("--change", `var(--change-${Math.min(outcome, colours.length - 1)})`);
      const bar = made("span", "bar", axis);
      bar.style.left = `${Math.min(before, after) / 10}%`;
      bar.style.width = `${Math.abs(after - before) / 10}%`;
      made("span", "dot", axis).style.left = `${before / 10}%`;
      made("span", "dot system", axis).style.left = `${after / 10}%`;
    }
    made("span", "change", line, change);
    made("span", "word", line, words.said[word]).title = words.said[word];
    return row;
  }

  placeOf(id) {
    const place = this.data.rows.findIndex((row) => row[0] === id);
    return place < 0 ? -1 : place + this.data.first;
  }

  select(id) {
    // It is announced again whenever the pane changes: a reader may have scrolled away since.
    if (id === this.selected) return;
    this.selected = id;
    this.mark();
    this.reveal(this.placeOf(id));
  }

  mark() {
    const selected = this.placeOf(this.selected);
    for (const row of this.room.children) {
      const place = Number(row.dataset.place);
      row.ariaSelected = String(place === selected);
      row.classList.toggle("active", place === this.active);
    }
    const shown = this.room.querySelector(".active");
    if (shown) this.box.setAttribute("aria-activedescendant", shown.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  reveal(place) {
    this.pending = place < 0;
    if (this.pending) return;
    const { scrollTop, clientHeight } = this.box;
    const top = place * HIGH;
    if (top < scrollTop || top + HIGH > scrollTop + clientHeight)
      this.box.scrollTop = top - (clientHeight - HIGH) / 2;
  }

  activate(place) {
    this.active = place;
    this.reveal(place);
    this.mark();
  }

  open(place) {
    const row = this.data.rows[place - this.data.first];
    if (!row) return;
    this.active = place;
    this.selected = row[0];
    this.mark();
    window.dispatchEvent(new CustomEvent("rankdash:open", { detail: row[0] }));
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / HIGH) - 1);
    const last = this.data.total - 1;
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: last,
    }[event.key];
    if (to !== undefined) this.activate(Math.min(Math.max(to, 0), last));
    else if (event.key === "Enter" || event.key === " ") this.open(this.active);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  inSight() {
    const { scrollTop, clientHeight } = this.box;
    return [Math.floor(scrollTop / HIGH), Math.ceil((scrollTop + clientHeight) / HIGH)];
  }

  scrolled() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.check(), 80);
  }

  check() {
    const { first, rows, total, size } = this.data;
    const [top, bottom] = this.inSight();
    const above = first > 0 && top < first + NEAR;
    const below = first + rows.length < total && bottom > first + rows.length - NEAR;
    if (!above && !below) return;
    const start = Math.round((top + bottom - size) / 2);
    const next = Math.max(0, Math.min(total - size, start));
    if (next === first || next === this.requested) return;
    this.requested = next;
    this.request(next);
  }
}

function made(kind, name, parent, text) {
  const element = document.createElement(kind);
  element.className = name;
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}
