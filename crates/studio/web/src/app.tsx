// Frame of the page, with navigation, colour scheme, and the view that the address names.
import { useEffect } from "preact/hooks";
import { begunAgain, go, route, type Route } from "./state/route.ts";
import { about, catalogue, meet } from "./state/server.ts";
import { theme, type Theme } from "./state/theme.ts";
import { CompareView } from "./views/Compare.tsx";
import { DriveView } from "./views/Drive.tsx";
import { OpenLink } from "./views/OpenLink.tsx";
import { RunView } from "./views/Run.tsx";
import { StartView } from "./views/Start.tsx";
import { TourView } from "./views/Tour.tsx";

const THEMES: [Theme, string][] = [
    ["system", "auto"],
    ["light", "light"],
    ["dark", "dark"],
];

/** Title of the window. */
const TITLES: Record<Route["view"], string> = { start: "Start", session: "Run", run: "Run", compare: "Runs", tour: "Tour", drive: "Drive" };

export function App() {
    useEffect(() => void meet(), []);
    const here = route.value;
    // `warp serve --studio` has no catalogue, so no run can start there.
    const hasLab = catalogue.value !== null || about.value?.drive !== true;
    useEffect(() => {
        if (!hasLab && route.value.view === "start") go("#/drive");
    }, [hasLab]);
    useEffect(() => {
        document.title = `${TITLES[here.view]} · WARP Studio`;
    }, [here.view]);
    const link = (hash: string, text: string, isHere: boolean) => (
        <a href={hash} aria-current={isHere ? "page" : undefined}>
            {text}
        </a>
    );
    return (
        <>
            <header class="top">
                <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
                    Skip to content
                </a>
                <a class="mark" href="#/" aria-label="WARP Studio, start page">
                    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
                        <rect width="9" height="9" fill="#0072B2" />
                        <rect x="11" width="9" height="9" class="pale" />
                        <rect y="11" width="9" height="9" class="pale" />
                        <rect x="11" y="11" width="9" height="9" fill="#D55E00" />
                    </svg>
                    <span>
                        WARP <b>Studio</b>
                    </span>
                </a>
                <nav aria-label="Views">
                    {about.value?.drive === true && link("#/drive", "Drive", here.view === "drive")}
                    {hasLab && link("#/", "Start", here.view === "start")}
                    {hasLab && link("#/compare", "Runs", here.view === "compare")}
                    {hasLab && link("#/tour", "Tour", here.view === "tour")}
                </nav>
                <label class="theme">
                    <span class="hidden">Colours</span>
                    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                        <circle cx="8" cy="8" r="6.5" />
                        <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" />
                    </svg>
                    <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
                        {THEMES.map(([key, text]) => (
                            <option value={key} key={key}>
                                {text}
                            </option>
                        ))}
                    </select>
                </label>
            </header>
            <View />
        </>
    );
}

function View() {
    const here = route.value;
    switch (here.view) {
        case "session":
            return <RunView id={here.id} key={`${here.id} ${begunAgain.value}`} />;
        case "run":
            return <OpenLink order={here.order} key={here.order} />;
        case "compare":
            return <CompareView />;
        case "tour":
            return <TourView story={here.story} key={here.story ?? ""} />;
        case "drive":
            return <DriveView />;
        default:
            return <StartView />;
    }
}
