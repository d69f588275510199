// Runs that the store has: found, and two beside each other.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Notice } from "../parts/Notice.tsx";
import { grouped, waf } from "../state/numbers.ts";
import { api } from "../state/server.ts";

type Row = Record<string, unknown>;

/** Columns that every store has, in the order in which they are read; others follow as they come. */
const FIRST = ["id", "at", "target", "title", "waf", "runs", "devices", "seconds", "warp"];
/** A digest that no reader compares by eye, and what is said in another column. */
const NOT_SHOWN = ["engine", "waf_range"];

function columnsOf(rows: Row[]): string[] {
    const isPlain = (value: unknown) => typeof value !== "object" || value === null || Array.isArray(value);
    const all = new Set(rows.flatMap((row) => Object.keys(row).filter((key) => !NOT_SHOWN.includes(key) && isPlain(row[key]))));
    return [...FIRST.filter((key) => all.has(key)), ...[...all].filter((key) => !FIRST.includes(key))].slice(0, 10);
}

/** What a column is called where its key is short. */
const NAMES: Record<string, string> = { at: "when (UTC)", target: "what", runs: "cells", waf: "WAF", seconds: "took, s", warp: "version" };

function isNumeric(rows: Row[], column: string): boolean {
    return column === "waf" || rows.some((row) => typeof row[column] === "number");
}

function cell(column: string, value: unknown): string {
    if (value === null || value === undefined) return "–";
    if (typeof value === "number") {
        if (/waf|amplification/.test(column)) return waf(value);
        return Number.isInteger(value) ? grouped(value) : value.toPrecision(3);
    }
    // Of a file its name; where it was stands in the row's title.
    if (column === "target" && typeof value === "string") return value.split(/[\\/]/).at(-1) ?? value;
    if (column === "at" && typeof value === "string") return value.slice(0, 16).replace("T", " ");
    if (Array.isArray(value)) return value.map((one) => cell(column, one)).join(", ");
    return String(value);
}

/** A column of a run; of several cells the write amplification of the least and of the greatest. */
function cellOf(column: string, row: Row): string {
    const range = row["waf_range"];
    if (column !== "waf" || typeof row[column] === "number" || !Array.isArray(range)) return cell(column, row[column]);
    return [...new Set(range.map((one) => cell(column, one)))].join(" to ");
}

export function CompareView() {
    const rows = useSignal<Row[] | null>(null);
    const problem = useSignal<string | null>(null);
    const search = useSignal("");
    const picked = useSignal<number[]>([]);
    useEffect(() => {
        api.runs().then(
            (found) => (rows.value = found),
            (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
        );
    }, []);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = rows.value ?? [];
    const columns = columnsOf(all);
    const shown = all.map((row, index) => ({ row, index })).filter(({ row }) => words.every((word) => JSON.stringify(row).toLowerCase().includes(word)));
    const pick = (index: number) => (picked.value = picked.value.includes(index) ? picked.value.filter((one) => one !== index) : [...picked.value.slice(-1), index]);
    return (
        <main id="content" tabIndex={-1} class="compare">
            <h1>Kept runs</h1>
            <p class="lead">What <code>warp run</code> has kept, the newest first. Choose two to see them beside each other.</p>
            {problem.value !== null && <Notice kind="error">{problem.value}</Notice>}
            {rows.value === null && problem.value === null && <div class="skeleton" style={{ height: "200px" }} aria-busy="true" />}
            {rows.value !== null && all.length === 0 && (
                <p class="empty">
                    Nothing is kept yet. <code>warp run three_stream</code> keeps its result here. A run of this page is kept by its link, or by an export.
                </p>
            )}
            {all.length > 0 && (
                <>
                    <input type="search" aria-label="Search the runs" placeholder={`Search ${all.length} runs`} value={search.value} onInput={(event) => (search.value = event.currentTarget.value)} />
                    <Beside rows={picked.value.map((index) => all[index] as Row)} />
                    <div class="scroll tall" tabIndex={0} role="region" aria-label="Runs">
                        <table class="numbers">
                            <thead>
                                <tr>
                                    <th scope="col">
                                        <span class="hidden">compare</span>
                                    </th>
                                    {columns.map((column) => (
                                        <th scope="col" key={column} class={isNumeric(all, column) ? "" : "text"}>
                                            {NAMES[column] ?? column.replaceAll("_", " ")}
                                        </th>
                                    ))}
                                </tr>
                            </thead>
                            <tbody>
                                {shown.map(({ row, index }) => (
                                    <tr key={index}>
                                        <td>
                                            <input type="checkbox" aria-label={`Compare ${cell("id", row["id"] ?? index)}`} checked={picked.value.includes(index)} onChange={() => pick(index)} />
                                        </td>
                                        {columns.map((column) => (
                                            <td key={column} class={isNumeric(all, column) ? "" : "text"} title={column === "waf" && row[column] === null && Array.isArray(row["waf_range"]) ? "of its cells, the least and the greatest" : column === "target" || column === "title" ? String(row[column]) : undefined}>
                                                <span class={column === "title" ? "cut" : ""}>{cellOf(column, row)}</span>
                                            </td>
                                        ))}
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                        {shown.length === 0 && <p class="empty">No run has these words.</p>}
                    </div>
                </>
            )}
        </main>
    );
}

/** Two runs: every number of both, and how far they are apart. */
function Beside({ rows }: { rows: Row[] }) {
    const [one, other] = rows;
    if (one === undefined || other === undefined) return <p class="beside-hint">{one === undefined ? "No run chosen." : "One chosen; one more."}</p>;
    const numbers = columnsOf([one, other]).filter((key) => typeof one[key] === "number" && typeof other[key] === "number");
    const title = (row: Row) => `${cell("target", row["target"] ?? row["title"])} ${cell("id", row["id"])}`;
    const hasWaf = numbers.includes("waf");
    return (
        <div class="scroll beside">
            <table class="numbers">
                <thead>
                    <tr>
                        <th scope="col">
                            <span class="hidden">what</span>
                        </th>
                        <th scope="col">{title(one)}</th>
                        <th scope="col">{title(other)}</th>
                        <th scope="col">difference</th>
                    </tr>
                </thead>
                <tbody>
                    {numbers.map((key) => {
                        const [a, b] = [one[key] as number, other[key] as number];
                        return (
                            <tr key={key}>
                                <th scope="row">{NAMES[key] ?? key.replaceAll("_", " ")}</th>
                                <td>{cell(key, a)}</td>
                                <td>{cell(key, b)}</td>
                                <td>{a === 0 ? "–" : `${b >= a ? "+" : "−"}${Math.abs((b / a - 1) * 100).toFixed(1)}\u00a0%`}</td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
            <p class="note">
                {!hasWaf && "These have several cells, so there is no single write amplification to compare. "}
                <code>
                    warp compare {cell("id", one["id"])} {cell("id", other["id"])}
                </code>{" "}
                compares them cell by cell.
            </p>
        </div>
    );
}
