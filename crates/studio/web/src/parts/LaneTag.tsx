// Letter of a lane, with the stroke of its curve.
import { STROKES } from "../curves/Curves.tsx";

export function laneLetter(index: number): string {
    return String.fromCharCode(65 + index);
}

export function LaneTag({ index }: { index: number }) {
    const stroke = STROKES[index % STROKES.length] as (typeof STROKES)[number];
    return (
        <span class="lane-tag">
            <b>{laneLetter(index)}</b>
            <svg width="26" height="4" viewBox="0 0 26 4" aria-hidden="true">
                <line x1="0" y1="2" x2="26" y2="2" class={stroke.colour} stroke-width={stroke.width} stroke-dasharray={stroke.dash.join(" ")} />
            </svg>
        </span>
    );
}
