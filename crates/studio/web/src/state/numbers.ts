// Formats numbers as docs/reference/results.md describes, with binary units and write
// amplification with three decimals. A non-breaking space separates a number from its unit.

const SPACE = "\u00a0";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats with three digits. Whole numbers of units have no decimals. */
export function bytes(value: number): string {
    let unit = 0;
    let left = value;
    while (left >= 1024 && unit < UNITS.length - 1) {
        left /= 1024;
        unit += 1;
    }
    return `${digits(left)}${SPACE}${UNITS[unit]}`;
}

function digits(value: number): string {
    if (Number.isInteger(value)) return String(value);
    if (value >= 100) return value.toFixed(0);
    return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Rates are in MB/s of a million bytes, as in data sheets. */
export function rate(bytesPerSecond: number): string {
    const mb = bytesPerSecond / 1e6;
    return `${mb >= 1000 ? grouped(Math.round(mb)) : digits(Number(mb.toFixed(2)))}${SPACE}MB/s`;
}

export function waf(value: number | null): string {
    return value === null ? "–" : value.toFixed(3);
}

export function percent(share: number): string {
    const of100 = share * 100;
    if (of100 === 0) return `0${SPACE}%`;
    return of100 < 0.1 ? `<0.1${SPACE}%` : `${of100.toFixed(of100 >= 99.95 ? 0 : 1)}${SPACE}%`;
}

/** Separates thousands by thin spaces. */
export function grouped(value: number): string {
    return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A count with its noun, such as "1 unit" or "2 units". */
export function counted(value: number, one: string): string {
    return `${grouped(value)}${SPACE}${one}${value === 1 ? "" : "s"}`;
}

export function capacities(share: number): string {
    if (share > 0 && share < 0.01) return "<0.01";
    return share.toFixed(2);
}

/** Formats a duration with three digits and a suitable unit. */
export function time(ns: number): string {
    for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]] as const) {
        if (ns >= size) return `${digits(Number((ns / size).toPrecision(3)))}${SPACE}${unit}`;
    }
    return `${Math.round(ns)}${SPACE}ns`;
}

/** Formats a time of today as hours and minutes, of another day with its date. */
export function moment(unixMs: number, nowMs: number): string {
    const two = (value: number) => String(value).padStart(2, "0");
    const [at, now] = [new Date(unixMs), new Date(nowMs)];
    const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    if (at.toDateString() === now.toDateString()) return clock;
    return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/** Formats a large count with a short suffix. */
export function short(value: number): string {
    if (value >= 1e9) return `${digits(Number((value / 1e9).toPrecision(3)))}${SPACE}G`;
    if (value >= 1e6) return `${digits(Number((value / 1e6).toPrecision(3)))}${SPACE}M`;
    if (value >= 1e4) return `${digits(Number((value / 1e3).toPrecision(3)))}${SPACE}k`;
    return grouped(value);
}
