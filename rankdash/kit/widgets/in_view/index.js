// A free space that says once when a reader has it in sight, and how wide it is.
const QUEUE = "rankdashInView";
const APART_MS = 50;

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  root.style.height = `${data.height}px`;
  let shown = true;
  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      // Of events that are sent together, Streamlit draws one fragment only.
      window[QUEUE] = (window[QUEUE] ?? Promise.resolve()).then(() => {
        if (!shown) return undefined;
        setTriggerValue("event", { of: data.of, width: root.clientWidth });
        return new Promise((done) => setTimeout(done, APART_MS));
      });
    },
    { rootMargin: "100px" },
  );
  watch.observe(root);
  return () => {
    shown = false;
    watch.disconnect();
  };
}
