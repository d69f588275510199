// Colour scheme and animations follow the system, unless the user chose otherwise.
import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "warp.theme";

const media = (query: string): MediaQueryList | null => globalThis.matchMedia?.(query) ?? null;
const wantsDark = media("(prefers-color-scheme: dark)");
const wantsStill = media("(prefers-reduced-motion: reduce)");
const systemDark = signal(wantsDark?.matches ?? false);
const systemStill = signal(wantsStill?.matches ?? false);
wantsDark?.addEventListener("change", (event) => (systemDark.value = event.matches));
wantsStill?.addEventListener("change", (event) => (systemStill.value = event.matches));

function remembered(): Theme {
    try {
        const kept = globalThis.localStorage?.getItem(KEY);
        return kept === "light" || kept === "dark" ? kept : "system";
    } catch {
        return "system";
    }
}

export const theme = signal<Theme>(remembered());
export const isDark = computed(() => (theme.value === "system" ? systemDark.value : theme.value === "dark"));
export const mayMove = computed(() => !systemStill.value);

/** Applies and stores the choice. Only the page calls it. A notebook keeps its own scheme. */
export function followTheme(): void {
    effect(() => {
        if (theme.value === "system") delete document.documentElement.dataset["theme"];
        else document.documentElement.dataset["theme"] = theme.value;
        try {
            if (theme.value === "system") localStorage.removeItem(KEY);
            else localStorage.setItem(KEY, theme.value);
        } catch {
            // Without storage, the choice is lost when the page closes.
        }
    });
}
