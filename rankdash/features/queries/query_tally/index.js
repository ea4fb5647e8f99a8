// Stacked bars of queries, each with its legend; a part is a filter of the list.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const text = JSON.stringify(data);
  if (root.shown === text) return;
  root.shown = text;
  const focused = root.getRootNode().activeElement?.dataset.part;
  root.replaceChildren(...data.bars.map((bar) => drawn(bar, setTriggerValue)));
  root.querySelector(`[data-part="${focused}"]`)?.focus();
}

function drawn({ field, title, parts }, send) {
  const group = made("div", "bar");
  group.role = "group";
  group.ariaLabel = title;
  const strip = made("div", "strip", group);
  strip.ariaHidden = "true";
  const legend = made("div", "legend", group);
  made("span", "title", legend, title);
  for (const { value, word, count, size, colour, chosen } of parts) {
    const choose = () => send("event", { field, value });
    const part = made("span", `part ${value}`, strip);
    part.style.flexGrow = size;
    part.title = `${word} ${count}`;
    part.onclick = choose;
    const button = made("button", chosen ? "chosen" : "", legend);
    button.type = "button";
    button.dataset.part = `${field}-${value}`;
    button.ariaPressed = String(chosen);
    button.onclick = choose;
    const swatch = made("span", `swatch ${value}`, button);
    if (colour) for (const each of [part, swatch]) each.style.setProperty("--part", colour);
    button.append(` ${word} `, made("b", "", null, count));
  }
  return group;
}

function made(kind, name, parent, text) {
  const element = document.createElement(kind);
  element.className = name;
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}
