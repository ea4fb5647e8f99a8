// The leaderboard: a row per system, sorted by any column, with ticks that choose what is compared.

// Give a node these children, [tag, attributes, text or children]: what is there stays, so that
// the focus stays too. Rows are known by `data-key`, others by their place.
function fill(node, children) {
  const old = new Map(
    [...node.children].map((each, place) => [each.dataset.key ?? `${place}`, each]),
  );
  children.forEach(([tag, attributes, inside], place) => {
    const key = attributes["data-key"] ?? `${place}`;
    let child = old.get(key);
    if (child?.localName === tag) old.delete(key);
    else child = document.createElement(tag);
    for (const { name } of [...child.attributes])
      if (attributes[name] == null) child.removeAttribute(name);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "checked") child.checked = value;
      else if (value != null && child.getAttribute(name) !== `${value}`)
        child.setAttribute(name, value);
    }
    if (Array.isArray(inside)) fill(child, inside);
    else if (inside != null && child.textContent !== inside) child.textContent = inside;
    if (node.children[place] !== child) node.insertBefore(child, node.children[place] ?? null);
  });
  old.forEach((each) => each.remove());
}

const at = (share) => `left:${(100 * share).toFixed(2)}%`;

// The change as a dot on its interval, on the axis of all rows.
function drawn(data, [value, low, high, colour, hollow, words]) {
  const lines = [["span", { class: "zero", style: at(data.axis.zero) }, ""]];
  if (data.axis.threshold != null)
    lines.push(["span", { class: "threshold", style: at(data.axis.threshold) }, ""]);
  if (value != null) {
    const ring = `border-color:${data.colours[colour]}`;
    const clear = hollow ? 5 : 0;
    if (low != null) {
      const [a, b, c] = [low, value, high].map((each) => (100 * each).toFixed(2));
      const ends = [
        `left:${a}%;right:calc(${100 - b}% + ${clear}px)`,
        `left:calc(${b}% + ${clear}px);right:${100 - c}%`,
      ];
      for (const each of ends)
        lines.push(["span", { class: "line", style: `${each};${ring}` }, ""]);
    }
    const look = hollow ? "dot hollow" : "dot";
    lines.push(["span", { class: look, style: `${at(value)};${ring}` }, ""]);
  }
  const named = words
    ? { role: "img", "aria-label": words, title: words }
    : { "aria-hidden": true };
  return ["span", { class: "axis", ...named }, lines];
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const state = (root.state ??= { by: data.by, all: false });
  const sortBy = (by) => Object.assign(state, { by, down: !data.columns[by].up });
  if (root.data !== data) {
    root.data = data;
    state.focus = data.focus;
    const compared = data.rows.filter(({ cells, id }) => cells && id !== data.baseline);
    state.ticked = new Set(compared.map((each) => each.id));
    if (state.down == null || state.by >= data.columns.length) sortBy(data.by);
  }

  const cell = ([text, small, more, , dot], place) => {
    const inside = dot ? [drawn(data, dot)] : [];
    if (text) inside.push(["span", {}, text]);
    if (small) inside.push(["small", {}, small]);
    const title = data.columns[place + 1].title;
    return ["td", { title: more || null, "data-title": title, class: dot ? "wide" : null }, inside];
  };

  const line = (row) => {
    const { id, name, whole, mark, cells } = row;
    const isBaseline = id === data.baseline;
    const tick = {
      type: "checkbox", "data-tick": id, checked: state.ticked.has(id), "aria-label": whole,
      class: isBaseline ? "unseen" : null, disabled: isBaseline ? "" : null,
    };
    const known = cells?.length && !isBaseline;
    const label = known
      ? ["button", { "data-focus": id, "aria-pressed": id === state.focus, title: whole }, name]
      : ["span", { title: whole, "data-tick": isBaseline ? null : id }, name];
    const head = [["input", tick], ["img", { src: mark, alt: "" }], label];
    const look = cells ? (known && id === state.focus ? "focus" : null) : "apart";
    const inside = [["th", { scope: "row", "aria-label": whole }, head], ...(cells ?? []).map(cell)];
    return ["tr", { "data-key": id, class: look, "data-focus": known ? id : null }, inside];
  };

  const value = (row) => (state.by ? row.cells[state.by - 1]?.[3] : row.whole);
  const order = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a == null || b == null) return (a == null) - (b == null);
    const up = typeof a === "string" ? a.localeCompare(b) : a - b;
    return state.down ? -up : up;
  };

  const draw = () => {
    const focused = root.getRootNode().activeElement;
    const compared = data.rows.filter((each) => each.cells).sort(order);
    const others = data.rows.filter((each) => !each.cells);
    const shown = state.all ? others : others.slice(0, data.few);
    state.shown = shown.map((each) => each.id);
    const head = data.columns.map((column, place) => {
      const inside = [["span", {}, column.title]];
      if (column.small) inside.push(["small", {}, column.small]);
      const sorted = state.down ? "descending" : "ascending";
      const parts = [["button", { "data-sort": place, title: column.more || null }, inside]];
      if (column.wide && data.axis)
        parts.unshift(["span", { class: "axis", "aria-hidden": true },
          [["span", { class: "tick", style: at(data.axis.zero) }, "0"]]]);
      return ["th", { scope: "col", class: column.wide ? "wide" : null,
        "aria-sort": place === state.by ? sorted : null }, parts];
    });
    const parts = [
      ["table", { "aria-label": data.words.title }, [
        ["thead", {}, [["tr", {}, head]]],
        ["tbody", {}, [...compared, ...shown].map(line)],
      ]],
    ];
    if (others.length) {
      const { hidden, add } = data.words;
      const news = [["span", {}, hidden], ["button", { "data-add": "" }, add]];
      if (shown.length < others.length)
        news.push(["button", { "data-all": "" }, data.words.all]);
      parts.unshift(["p", { role: "status" }, news]);
    } else parts.unshift(["p", { role: "status" }, []]);
    fill(root, parts);
    // A button that went leaves the focus to the first tick.
    if (focused && focused !== root.getRootNode().activeElement)
      (focused.isConnected ? focused : root.querySelector("input:enabled"))?.focus();
  };

  const compare = (ids) => {
    state.ticked = new Set(ids);
    setTriggerValue("event", { systems: [...state.ticked] });
    draw();
  };

  root.onclick = ({ target }) => {
    const found = target.closest("[data-tick],[data-focus],[data-sort],[data-add],[data-all]");
    const { tick, focus, sort, add, all } = found?.dataset ?? {};
    if (tick != null) {
      const ids = new Set(state.ticked);
      if (!ids.delete(tick)) ids.add(tick);
      compare(ids);
    } else if (focus != null && focus !== state.focus) {
      state.focus = focus;
      setTriggerValue("event", { focus });
      draw();
    } else if (sort != null) {
      const by = Number(sort);
      if (by === state.by) state.down = !state.down;
      else sortBy(by);
      draw();
    } else if (add != null) compare([...state.ticked, ...state.shown]);
    else if (all != null) {
      state.all = true;
      draw();
    }
  };
  draw();
}
