// View to search stored runs and compare two of them by cell with the verdicts of `warp results
// compare`.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Notice } from "../parts/Notice.tsx";
import { prose } from "../parts/Prose.tsx";
import { counted, grouped, waf } from "../state/numbers.ts";
import { api } from "../state/server.ts";
import type { Comparison, Difference } from "../wire/messages.ts";

type Row = Record<string, unknown>;

/** Columns of every store, in display order. Other columns follow. */
const FIRST = ["id", "at", "target", "title", "waf", "runs", "devices", "seconds", "warp"];
/** Hidden columns, which have a digest or values of other columns. */
const NOT_SHOWN = ["engine", "waf_range"];

function columnsOf(rows: Row[]): string[] {
    const isPlain = (value: unknown) => typeof value !== "object" || value === null || Array.isArray(value);
    const all = new Set(rows.flatMap((row) => Object.keys(row).filter((key) => !NOT_SHOWN.includes(key) && isPlain(row[key]))));
    return [...FIRST.filter((key) => all.has(key)), ...[...all].filter((key) => !FIRST.includes(key))].slice(0, 10);
}

/** Headings for short keys. */
const NAMES: Record<string, string> = { at: "time (UTC)", target: "target", runs: "cells", waf: "WAF", seconds: "duration, s", warp: "version" };

function isNumeric(rows: Row[], column: string): boolean {
    return column === "waf" || rows.some((row) => typeof row[column] === "number");
}

function cell(column: string, value: unknown): string {
    if (value === null || value === undefined) return "–";
    if (typeof value === "number") {
        if (/waf|amplification/.test(column)) return waf(value);
        return Number.isInteger(value) ? grouped(value) : value.toPrecision(3);
    }
    // A file appears by its name. The row's title has the full path.
    if (column === "target" && typeof value === "string") return value.split(/[\\/]/).at(-1) ?? value;
    if (column === "at" && typeof value === "string") return value.slice(0, 16).replace("T", " ");
    if (Array.isArray(value)) return value.map((one) => cell(column, one)).join(", ");
    return String(value);
}

/** Column of a run. Several cells appear as the lowest and the highest write amplification. */
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
            <h1>Stored runs</h1>
            <p class="lead"><code>warp run</code> stored these runs, newest first. Choose two to compare their cells.</p>
            {problem.value !== null && <Notice kind="error">{problem.value}</Notice>}
            {rows.value === null && problem.value === null && <div class="skeleton" style={{ height: "200px" }} aria-busy="true" />}
            {rows.value !== null && all.length === 0 && (
                <p class="empty">
                    No runs are stored yet. <code>warp run three_stream</code> stores its result here. To keep a run of this page, copy its link or export it.
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
                                            <td key={column} class={isNumeric(all, column) ? "" : "text"} title={column === "waf" && row[column] === null && Array.isArray(row["waf_range"]) ? "minimum and maximum of its cells" : column === "target" || column === "title" ? String(row[column]) : undefined}>
                                                <span class={column === "title" ? "cut" : ""}>{cellOf(column, row)}</span>
                                            </td>
                                        ))}
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                        {shown.length === 0 && <p class="empty">No run matches the search.</p>}
                    </div>
                </>
            )}
        </main>
    );
}

/** Verdict on a difference, in words. */
const VERDICTS: Record<Difference["verdict"], string> = { same: "the same", more: "more", less: "less", no_difference: "no difference", one_seed: "one seed" };

function number(value: number): string {
    return Number.isInteger(value) ? grouped(value) : String(Number(value.toPrecision(4)));
}

function signed(value: number): string {
    return value === 0 ? "0" : `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`;
}

/** Comparison of two runs by cell, computed by the server. */
function Beside({ rows }: { rows: Row[] }) {
    const [one, other] = rows.map((row) => String(row["id"] ?? ""));
    const found = useSignal<Comparison | null>(null);
    const problem = useSignal<string | null>(null);
    const isAll = useSignal(false);
    useEffect(() => {
        found.value = null;
        problem.value = null;
        if (one === undefined || other === undefined) return;
        let isCurrent = true;
        api.compare(one, other).then(
            (comparison) => {
                if (isCurrent) found.value = comparison;
            },
            (error: unknown) => {
                if (isCurrent) problem.value = error instanceof Error ? error.message : String(error);
            },
        );
        return () => {
            isCurrent = false;
        };
    }, [one, other]);
    if (one === undefined || other === undefined) return <p class="beside-hint">{one === undefined ? "Choose two runs." : "Choose one more run."}</p>;
    if (problem.value !== null) return <Notice kind="note">{`These two runs cannot be compared. ${problem.value}. Runs need cells of the same name, or one cell each (\`warp run NAME --variant VARIANT\`).`}</Notice>;
    if (found.value === null) return <div class="skeleton" style={{ height: "120px" }} aria-busy="true" />;
    return <Differences comparison={found.value} isAll={isAll} />;
}

function Differences({ comparison, isAll }: { comparison: Comparison; isAll: Signal<boolean> }) {
    const { a, b, rows } = comparison;
    const cells = [...new Set(rows.map((row) => row.cell))];
    const hasCells = cells.some((one) => one !== "");
    const wafs = rows.filter((row) => row.metric === "WAF");
    const shown = isAll.value || wafs.length === 0 ? rows : wafs;
    const hasIntervals = shown.some((row) => row.interval !== null);
    return (
        <section class="beside" aria-label="Comparison of two runs">
            <p>
                <b>A</b> {a.about}
            </p>
            <p>
                <b>B</b> {b.about}
            </p>
            <p class="note">
                {prose([hasCells
                    ? `${counted(cells.length, "cell")} of the same name in both ${cells.length === 1 ? "is" : "are"} compared.`
                    : "Each run has one cell. The table compares these two cells.", " ", rows.some((row) => row.verdict === "one_seed") ? "With one seed, chance cannot be excluded. Give both experiments several seeds (`seeds = [1, 2, 3]`)." : "A difference is significant if its 95\u00a0% interval over the seeds excludes zero."])}
            </p>
            <OnlyIn name="A" cells={comparison.only_a} />
            <OnlyIn name="B" cells={comparison.only_b} />
            {[...a.notes, ...b.notes].map((note) => (
                <p class="note" key={note}>
                    {note}
                </p>
            ))}
            <div class="scroll tall" tabIndex={0} role="region" aria-label="Differences">
                <table class="numbers">
                    <thead>
                        <tr>
                            {hasCells && (
                                <th scope="col" class="text">
                                    cell
                                </th>
                            )}
                            <th scope="col" class="text">
                                metric
                            </th>
                            <th scope="col">A</th>
                            <th scope="col">B</th>
                            <th scope="col">difference</th>
                            {hasIntervals && <th scope="col">95&nbsp;%</th>}
                            <th scope="col" class="text">
                                B is
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {shown.map((row) => (
                            <tr key={`${row.cell} ${row.metric}`}>
                                {hasCells && <td class="text">{row.cell}</td>}
                                <td class="text">{row.metric}</td>
                                <td>{/WAF/.test(row.metric) ? waf(row.a) : number(row.a)}</td>
                                <td>{/WAF/.test(row.metric) ? waf(row.b) : number(row.b)}</td>
                                <td>{row.share === null ? signed(row.b - row.a) : `${row.share < 0 ? "−" : "+"}${Math.abs(row.share * 100).toFixed(1)}\u00a0%`}</td>
                                {hasIntervals && <td>{row.interval === null ? "–" : row.interval.map(signed).join(" to ")}</td>}
                                <td class="text">{VERDICTS[row.verdict]}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {wafs.length > 0 && wafs.length < rows.length && (
                <label class="inline">
                    <input type="checkbox" checked={isAll.value} onChange={(event) => (isAll.value = event.currentTarget.checked)} /> all {rows.length} metrics of both runs
                </label>
            )}
            <p class="note">
                <code>
                    warp results compare {a.name} {b.name}
                </code>{" "}
                prints the same comparison.
            </p>
        </section>
    );
}

function OnlyIn({ name, cells }: { name: string; cells: string[] }) {
    if (cells.length === 0) return null;
    return (
        <p class="note">
            {counted(cells.length, "cell")} only in {name} (not compared), {cells.slice(0, 6).join(", ")}
            {cells.length > 6 && ` and ${cells.length - 6} more`}
        </p>
    );
}
