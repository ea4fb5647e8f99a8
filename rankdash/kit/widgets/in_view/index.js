// A free space that says once when a reader has it in sight.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  root.style.height = `${data.height}px`;
  const watch = new IntersectionObserver(
    (entries) => {
      if (entries.some((each) => each.isIntersecting)) {
        watch.disconnect();
        setTriggerValue("event", data.of);
      }
    },
    { rootMargin: "100px" },
  );
  watch.observe(root);
  return () => watch.disconnect();
}
