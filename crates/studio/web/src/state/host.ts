// Colour scheme and keyboard shortcuts of a widget in a notebook.
import { type Theme, theme } from "./theme.ts";

/**
 * Colour scheme of the notebook (JupyterLab, Notebook 7, VS Code). Other notebooks follow the
 * system.
 */
export function themeOf(body: { dataset: DOMStringMap; classList: { contains(name: string): boolean } }): Theme {
    const light = body.dataset["jpThemeLight"];
    if (light === "true") return "light";
    if (light === "false") return "dark";
    if (body.classList.contains("vscode-light") || body.classList.contains("vscode-high-contrast-light")) return "light";
    if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return "dark";
    return "system";
}

/** Follows the colour scheme of the notebook. Returns a function that stops it. */
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
