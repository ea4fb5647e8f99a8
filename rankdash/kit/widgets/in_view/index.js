// A free space that says once when a reader has it in sight, and how wide it is.
const QUEUE = "rankdashInView";
const OLD = "[data-stale='true'], [data-retained='true']";
const pause = () => new Promise((done) => setTimeout(done, 50));

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  root.style.height = `${data.height}px`;
  let shown = true;
  const send = async () => {
    // A page that is being left moves up into sight; it goes as soon as the next one is complete.
    while (shown && parentElement.host.closest(OLD)) await pause();
    if (!shown) return;
    setTriggerValue("event", { of: data.of, width: root.clientWidth });
    // Of events that are sent together, Streamlit draws one fragment only.
    await pause();
  };
  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      window[QUEUE] = (window[QUEUE] ?? Promise.resolve()).then(send);
    },
    { rootMargin: "100px" },
  );
  watch.observe(root);
  return () => {
    shown = false;
    watch.disconnect();
  };
}
