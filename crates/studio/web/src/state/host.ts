// The notebook around a widget: light or dark, and its keys.
import { type Theme, theme } from "./theme.ts";

/** What the notebook says of itself: JupyterLab and Notebook 7, VS Code. Others are as the reader's system. */
export function themeOf(body: { dataset: DOMStringMap; classList: { contains(name: string): boolean } }): Theme {
    const light = body.dataset["jpThemeLight"];
    if (light === "true") return "light";
    if (light === "false") return "dark";
    if (body.classList.contains("vscode-light") || body.classList.contains("vscode-high-contrast-light")) return "light";
    if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return "dark";
    return "system";
}

/** Looks as the notebook does, from now on; returns what ends that. */
export function followNotebook(place: HTMLElement): () => void {
    const look = () => {
        theme.value = themeOf(document.body);
        if (theme.value === "system") delete place.dataset["theme"];
        else place.dataset["theme"] = theme.value;
    };
    look();
    const observer = new MutationObserver(look);
    observer.observe(document.body, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
    return () => observer.disconnect();
}
