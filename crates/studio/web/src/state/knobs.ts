// Common settings for forks and lanes, with useful values. All other settings are available by
// name.
import type { Lane, Setting, Settings } from "../wire/messages.ts";
import { bytes, percent } from "./numbers.ts";

export interface Knob {
    path: string;
    label: string;
    values: { label: string; value: Setting }[];
    /** Hint for settings with free values. */
    hint: string;
}

const percentValues = (...shares: number[]) => shares.map((share) => ({ label: `${Math.round(share * 100)} %`, value: share }));
const named = (...names: string[]) => names.map((name) => ({ label: name.replaceAll("_", " "), value: name }));

export const KNOBS: Knob[] = [
    { path: "geometry.over_provisioning", label: "over-provisioning", values: percentValues(0.07, 0.1, 0.15, 0.2, 0.28, 0.4), hint: "a share of the capacity, such as 0.28" },
    {
        path: "gc.victim_policy",
        label: "victim selection",
        values: [
            ...named("greedy", "cost_age", "benefit_cost", "benefit_cost_since_invalidation", "fifo", "random"),
            { label: "best of 8 (d-choices)", value: { d_choices: 8 } },
            { label: "best of 16 (d-choices)", value: { d_choices: 16 } },
            { label: "windowed greedy, 64", value: { windowed_greedy: 64 } },
        ],
        hint: "greedy, fifo, ...",
    },
    { path: "handles.isolation", label: "isolation of handles", values: named("initially_isolated", "persistently_isolated", "adaptive"), hint: "initially_isolated" },
    {
        path: "geometry.reclaim_unit_bytes",
        label: "reclaim unit size (full drive)",
        values: ["64MiB", "128MiB", "256MiB", "512MiB", "1GiB", "2GiB", "4GiB", "8GiB", "16GiB"].map((size) => ({ label: size.replace(/(\d+)/, "$1 "), value: size })),
        hint: "a size of the full drive, such as 256MiB",
    },
    { path: "gc.source_policy", label: "source of collections", values: named("global", "highest_pressure"), hint: "global" },
    { path: "gc.copies", label: "placement of copies", values: named("apart", "with_host"), hint: "apart" },
    { path: "gc.lazy_valid_share", label: "lazy valid share", values: percentValues(0, 0.05, 0.1, 0.2), hint: "a share, such as 0.05" },
    { path: "handles.count", label: "number of handles", values: [1, 2, 4, 8, 16].map((count) => ({ label: String(count), value: count })), hint: "1 to 128" },
    { path: "handles.hot_window_bytes", label: "hot data separation in the drive", values: [{ label: "none", value: 0 }, ...["64MiB", "256MiB", "1GiB"].map((size) => ({ label: size.replace(/(\d+)/, "$1 "), value: size }))], hint: "a size, such as 64MiB" },
    { path: "workload.global.dataplacement", label: "placement of a job file", values: [{ label: "none (NoFDP)", value: "none" }, { label: "fdp", value: "fdp" }], hint: "none" },
];

export const OTHER = "other";

/** Parses the value of a setting as a number, true, false, or text. */
export function readSetting(text: string): Setting {
    const trimmed = text.trim();
    if (trimmed === "true" || trimmed === "false") return trimmed === "true";
    return trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

export function settingText(value: Setting): string {
    if (typeof value !== "object") return String(value);
    return Object.entries(value)
        .map(([name, of]) => `${name} ${of}`)
        .join(", ");
}

/** Short name for the changes of a fork. */
export function nameOf(set: Settings): string {
    return Object.entries(set)
        .map(([path, value]) => {
            const knob = KNOBS.find((one) => one.path === path);
            const known = knob?.values.find((one) => JSON.stringify(one.value) === JSON.stringify(value))?.label ?? settingText(value);
            if (path === "geometry.over_provisioning") return `OP ${known}`;
            if (path === "handles.isolation") return { initially_isolated: "II", persistently_isolated: "PI" }[String(value)] ?? known;
            if (path === "geometry.reclaim_unit_bytes") return `units of ${known}`;
            return knob === undefined ? `${path.split(".").at(-1)} ${known}` : known;
        })
        .join(", ");
}

/** Current value of a lane as text. Empty if the lane does not report it. */
export function currentValue(lane: Lane, path: string): string {
    const value = lane.settings[path];
    if (value === undefined) return "";
    const knob = KNOBS.find((one) => one.path === path);
    const known = knob?.values.find((one) => JSON.stringify(one.value) === JSON.stringify(value))?.label;
    if (known !== undefined) return known;
    // Shares are displayed as percentages, and sizes with units.
    if (typeof value === "number" && path.endsWith("_bytes") && value > 0) return bytes(value);
    if (typeof value === "number" && knob?.values[0]?.label.endsWith("%") === true) return percent(value);
    return settingText(value).replaceAll("_", " ");
}

/** Returns a name that no lane of the session has. */
export function freeName(name: string, taken: string[]): string {
    for (let count = 2, tried = name; ; count += 1) {
        if (!taken.includes(tried)) return tried;
        tried = `${name} ${count}`;
    }
}
