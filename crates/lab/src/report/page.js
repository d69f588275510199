// Draws the plots, one after the other so that the page can be read meanwhile; those in a closed fold when it opens.
(() => {
  const draw = (place) => {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const plot = JSON.parse(document.getElementById(place.dataset.plot).textContent);
    Plotly.newPlot(place, plot.data, plot.layout, plot.config);
  };
  const places = [...document.querySelectorAll(".plot")];
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
    places.filter((place) => !place.closest("details:not([open])")).forEach(draw);
    places.filter((place) => place.dataset.drawn).forEach(fit);
  });
  addEventListener("afterprint", () => {
    document.body.classList.remove("printing");
    places.filter((place) => place.dataset.drawn).forEach(Plotly.Plots.resize);
  });
})();
