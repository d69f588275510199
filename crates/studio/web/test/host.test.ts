import { expect, test } from "vitest";
import { themeOf } from "../src/state/host.ts";

const body = (classes: string[], dataset: DOMStringMap = {}) => ({ dataset, classList: { contains: (name: string) => classes.includes(name) } });

test("a widget is as light or dark as its notebook", () => {
    expect(themeOf(body([], { jpThemeLight: "true" }))).toBe("light");
    expect(themeOf(body([], { jpThemeLight: "false" }))).toBe("dark");
    expect(themeOf(body(["vscode-light"]))).toBe("light");
    expect(themeOf(body(["vscode-dark"]))).toBe("dark");
    expect(themeOf(body(["vscode-high-contrast"]))).toBe("dark");
    expect(themeOf(body(["vscode-high-contrast", "vscode-high-contrast-light"]))).toBe("light");
    expect(themeOf(body(["notebook"]))).toBe("system");
});
