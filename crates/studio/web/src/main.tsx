// Entry point of the page.
import { render } from "preact";
import { App } from "./app.tsx";
import { followTheme } from "./state/theme.ts";
import "uplot/dist/uPlot.min.css";
import "./styles.css";

followTheme();
const place = document.getElementById("app");
if (place !== null) render(<App />, place);
