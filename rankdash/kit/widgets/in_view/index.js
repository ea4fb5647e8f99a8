// An empty space that sends one event when it comes into sight: its width, and whether the first
// screen of the page, before any scrolling, shows it.
const QUEUE = "rankdashInView";
// A strip that is narrower, in pixels, does not count as being in sight.
const LEAST = 40;
const OLD = "[data-stale='true'], [data-retained='true']";
const BUSY = "[data-testid='stApp']:not([data-test-script-state='notRunning'])";
const pause = () => new Promise((done) => setTimeout(done, 50));

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  root.style.height = `${data.height}px`;
  // Keyboard focus scrolls it into sight.
  Object.assign(root, { tabIndex: 0, role: "group", ariaLabel: data.words });
  let watching = true;
  const isOld = () => root.isConnected && parentElement.host.closest(OLD);
  const send = async () => {
    // A click may open another page, which a late event of this page would empty.
    while (watching && document.querySelector(BUSY)) await pause();
    if (isOld()) return void enqueue();
    if (!watching || !root.isConnected) return;
    const scrolled = parentElement.host.closest("[data-testid='stMain']")?.scrollTop ?? 0;
    const first = root.getBoundingClientRect().top + scrolled < window.innerHeight - LEAST;
    setTriggerValue("event", { of: data.of, width: root.clientWidth, first });
    await pause();
  };
  const enqueue = async () => {
    // A page that is being left moves up into sight; it goes as soon as the next one is complete.
    while (isOld()) await pause();
    if (!watching || !root.isConnected) return;
    // Of events that are sent together, Streamlit draws one fragment only.
    window[QUEUE] = (window[QUEUE] ?? Promise.resolve()).then(send);
  };
  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      watch.disconnect();
      enqueue();
    },
    { rootMargin: `-${LEAST}px 0px` },
  );
  watch.observe(root);
  return () => {
    watching = false;
    watch.disconnect();
  };
}
