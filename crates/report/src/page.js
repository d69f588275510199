// Draws the plots one after the other, so that the page stays responsive. Plots in a collapsed section are drawn when it opens.
(() => {
  const draw = (place) => {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
    Plotly.newPlot(place, shaded(plot.data), shaded(plot.layout), plot.config);
  };
  // On a dark screen a plot's colours are those that the style has in their place; on paper they are its own.
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  let printing = false;
  const shaded = (value) => {
    if (!dark.matches || printing) return value;
    if (Array.isArray(value)) return value.map(shaded);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shaded(inner)]));
    }
    const colour = typeof value === "string" && /^#[0-9A-F]{6}([0-9A-F]{2})?$/.exec(value);
    if (!colour) return value;
    const instead = getComputedStyle(document.documentElement).getPropertyValue("--c" + value.slice(1, 7)).trim();
    return instead ? instead + (colour[1] ?? "") : value;
  };
  const redraw = (place) => {
    const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
    Plotly.react(place, shaded(plot.data), shaded(plot.layout), plot.config);
  };
  const places = [...document.querySelectorAll(".plot")];
  if (!window.Plotly) {
    document.getElementById("missing").hidden = places.length === 0;
    return;
  }
  const drawn = () => places.filter((place) => place.dataset.drawn);
  dark.addEventListener("change", () => drawn().forEach(redraw));
  const waiting = places.filter((place) => !place.closest("details:not([open])"));
  const next = () => {
    const place = waiting.shift();
    if (place) {
      draw(place);
      setTimeout(next);
    }
  };
  next();
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => fold.open && fold.querySelectorAll(".plot").forEach(draw));
  }
  // Paper is narrower than the window, and it cannot be unfolded. Plotly's own resizing waits, printing does not.
  const fit = (place) => Plotly.relayout(place, { width: place.clientWidth, height: place.clientHeight });
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details:not(.screen)").forEach((fold) => (fold.open = true));
    document.body.classList.add("printing");
    printing = true;
    if (dark.matches) drawn().forEach(redraw);
    places.filter((place) => !place.closest("details:not([open])")).forEach(draw);
    places.filter((place) => place.dataset.drawn).forEach(fit);
  });
  addEventListener("afterprint", () => {
    document.body.classList.remove("printing");
    printing = false;
    if (dark.matches) drawn().forEach(redraw);
    places.filter((place) => place.dataset.drawn).forEach(Plotly.Plots.resize);
  });
})();
