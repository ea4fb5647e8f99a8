// Beside the open query: shows it from its top, brings it into view, and passes to Python which one
// a reader opens in the list.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  if (root.query !== data.query) {
    root.query = data.query;
    const pane = document.querySelector(".st-key-queries-pane-query");
    if (pane) pane.scrollTop = 0;
    if (data.land) land(pane);
  }
  const open = (event) => setTriggerValue("event", { open: event.detail });
  window.addEventListener("rankdash:open", open);
  return () => window.removeEventListener("rankdash:open", open);
}

// Only if the query is out of sight, and not once a reader scrolls. What is above it may get its
// height a moment later.
function land(pane) {
  let scrolled = false;
  addEventListener("wheel", () => (scrolled = true), { once: true, passive: true });
  const show = () => {
    const top = pane?.getBoundingClientRect().top ?? 0;
    if (!scrolled && (top < 0 || top > innerHeight * 0.6)) pane?.scrollIntoView();
  };
  for (const wait of [0, 400, 1000]) setTimeout(show, wait);
}
