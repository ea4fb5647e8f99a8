// A button for each reason: its name, a signed bar, what it adds to the mean, and its queries.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const { rows, zero, words } = data;
  root.setAttribute("role", "list");
  root.setAttribute("aria-label", words.label);
  const item = (row) => {
    const line = document.createElement("div");
    line.setAttribute("role", "listitem");
    const button = document.createElement("button");
    button.title = row.meaning;
    button.onclick = () => setTriggerValue("event", row.code);
    for (const part of ["reason", "bar", "adds", "queries"]) {
      const span = document.createElement("span");
      span.className = part;
      span.textContent = row[part] ?? "";
      button.append(span);
    }
    const bar = button.querySelector(".bar");
    bar.style.setProperty("--zero", `${zero}%`);
    const mark = document.createElement("i");
    mark.style.left = `${row.left}%`;
    mark.style.width = `${row.width}%`;
    mark.style.background = row.colour;
    bar.append(mark);
    line.append(button);
    return line;
  };
  // Another study: the reader keeps the place among the buttons.
  const buttons = [...root.querySelectorAll("button")];
  const place = buttons.indexOf(root.getRootNode().activeElement);
  root.replaceChildren(...rows.map(item));
  if (place >= 0) root.querySelectorAll("button")[Math.min(place, rows.length - 1)]?.focus();
}
