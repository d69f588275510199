// Line plot by uPlot in the page's style. The plot object is reused while its lines stay the same.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { short } from "../state/numbers.ts";
import { isDark } from "../state/theme.ts";

export interface Line {
    label: string;
    colour: string;
    dash?: number[];
    width?: number;
    fill?: string;
    points?: boolean;
}

interface Props {
    lines: Line[];
    data: uPlot.AlignedData;
    xLabel: string;
    yLabel: string;
    /** Formats a value for the legend. */
    value: (value: number | null) => string;
    xValue: (value: number) => string;
    /** Upper bound for the start of the vertical axis. */
    least: number;
    height?: number;
    label: string;
    /** Range of the horizontal axis. The default starts at the first x and ends at the last. */
    xEnd?: number | undefined;
    marks?: { x: number; label: string }[];
    bars?: boolean;
    /** Logarithmic vertical axis. */
    log?: boolean;
}

function styleOf(element: Element, name: string): string {
    return getComputedStyle(element).getPropertyValue(name).trim();
}

/** Number of decimals for multiples of `step`. */
function decimalsOf(step: number): number {
    for (let digits = 0; digits < 6; digits += 1) {
        if (Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-9 * 10 ** digits) return digits;
    }
    return 6;
}

export function Plot(props: Props) {
    const place = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const latest = useRef(props);
    latest.current = props;
    const height = props.height ?? 260;
    const key = JSON.stringify([props.lines, isDark.value, props.xLabel, props.yLabel, props.bars, props.log]);

    useLayoutEffect(() => {
        const element = place.current;
        if (element === null) return;
        const ink = styleOf(element, "--ink");
        const muted = styleOf(element, "--muted");
        const line = styleOf(element, "--line");
        const font = `12px ${styleOf(element, "--sans") || "system-ui, sans-serif"}`;
        // All labels of an axis have as many decimals as its finest step.
        const values = (_: uPlot, splits: number[], __: number, ___: number, step: number) => {
            const digits = decimalsOf(step);
            return splits.map((split) => split.toFixed(digits));
        };
        // On a logarithmic axis, only these marks have labels. The others have no space for one.
        const powers = (_: uPlot, splits: (number | null)[]) => splits.map((split) => (split !== null && Number.isInteger(Math.log10(split)) ? short(split) : ""));
        const axis = { stroke: muted, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, labelFont: font, labelSize: 20, labelGap: 0, values };
        const made = new uPlot(
            {
                width: Math.max(200, element.clientWidth),
                height,
                padding: [12, 18, 0, 0],
                legend: {
                    show: true,
                    live: true,
                    markers: { width: 2, dash: (_, index) => ({ 0: "solid", 2: (props.lines[index - 1]?.dash?.[0] ?? 0) < 4 ? "dotted" : "dashed" })[props.lines[index - 1]?.dash?.length ? 2 : 0] ?? "solid" },
                },
                cursor: { drag: { x: false, y: false }, points: { size: 7 } },
                scales: {
                    x: { time: false, range: (_, min, max) => [Math.min(0, min ?? 0), Math.max(latest.current.xEnd ?? 0, max ?? 1) || 1] },
                    y: props.log === true ? { distr: 3, log: 10 } : { range: (_, min, max) => [Math.min(latest.current.least, min ?? latest.current.least), Math.max(latest.current.least + 0.1, (max ?? 1) * 1.04)] },
                },
                axes: [
                    { ...axis, size: 34, label: props.xLabel, grid: { show: false } },
                    { ...axis, size: 48, label: props.yLabel, values: props.log === true ? powers : values },
                ],
                series: [
                    { label: props.xLabel, value: (_, x) => (x === null || x === undefined ? "–" : latest.current.xValue(x)) },
                    ...props.lines.map((one) => ({
                        label: one.label,
                        stroke: one.colour === "ink" ? ink : one.colour === "muted" ? muted : one.colour,
                        width: one.width ?? 2,
                        dash: one.dash ?? [],
                        ...(one.fill === undefined ? {} : { fill: one.fill }),
                        ...(props.bars === true ? { paths: uPlot.paths.bars?.({ size: [0.9] }) as uPlot.Series.PathBuilder } : {}),
                        spanGaps: true,
                        points: { show: one.points ?? false },
                        // uPlot gives undefined for an x without a point of this line.
                        value: (_: uPlot, value: number | null | undefined) => latest.current.value(value ?? null),
                    })),
                ],
                hooks: {
                    drawAxes: [
                        (self) => {
                            const { ctx } = self;
                            for (const mark of latest.current.marks ?? []) {
                                const x = Math.round(self.valToPos(mark.x, "x", true));
                                if (!Number.isFinite(x)) continue;
                                ctx.save();
                                ctx.strokeStyle = muted;
                                ctx.fillStyle = muted;
                                ctx.lineWidth = devicePixelRatio;
                                ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
                                ctx.beginPath();
                                ctx.moveTo(x, self.bbox.top);
                                ctx.lineTo(x, self.bbox.top + self.bbox.height);
                                ctx.stroke();
                                ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
                                ctx.textAlign = x > self.bbox.left + self.bbox.width * 0.7 ? "right" : "left";
                                ctx.fillText(` ${mark.label} `, x, self.bbox.top + 10 * devicePixelRatio);
                                ctx.restore();
                            }
                        },
                    ],
                },
            },
            latest.current.data,
            element,
        );
        plot.current = made;
        const observer = new ResizeObserver(() => {
            if (element.clientWidth > 0 && element.clientWidth !== made.width) made.setSize({ width: element.clientWidth, height });
        });
        observer.observe(element);
        return () => {
            observer.disconnect();
            made.destroy();
            plot.current = null;
        };
    }, [key, height]);

    useEffect(() => {
        const made = plot.current;
        if (made === null) return;
        made.setData(props.data);
        // Without a pointer, the legend shows the last value of each line.
        if ((made.cursor.left ?? -1) >= 0 || (props.data[0]?.length ?? 0) === 0) return;
        const idxs = props.data.map((column) => {
            let last = column.length - 1;
            while (last > 0 && (column[last] === null || column[last] === undefined)) last -= 1;
            return last;
        });
        made.setLegend({ idxs });
    }, [props.data, props.xEnd]);

    return <div class="plot" data-y-label={props.yLabel} ref={place} role="img" aria-label={props.label} style={{ minHeight: `${height + 30}px` }} />;
}
