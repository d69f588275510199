// Small shared controls for a choice of several values, and a choice of a lane.
import type { Signal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { LaneState } from "../state/lane.ts";
import { laneLetter } from "./LaneTag.tsx";

/** Choice of a few visible values, as radio buttons that look like a switch. */
export function Choice<T extends string>({ label, value, onChange, choices }: { label: string; value: T; onChange: (value: T) => void; choices: [T, string][] }) {
    const name = useId();
    return (
        <fieldset class="choice">
            <legend class="hidden">{label}</legend>
            {choices.map(([key, text]) => (
                <label key={key}>
                    <input type="radio" name={name} checked={value === key} onChange={() => onChange(key)} />
                    <span>{text}</span>
                </label>
            ))}
        </fieldset>
    );
}

/** Choice of a lane. Renders nothing for a single lane. */
export function LaneChoice({ lanes, value }: { lanes: LaneState[]; value: Signal<number> }) {
    if (lanes.length < 2) return null;
    return (
        <label class="inline">
            of
            <select value={Math.min(value.value, lanes.length - 1)} onChange={(event) => (value.value = Number(event.currentTarget.value))}>
                {lanes.map((state, index) => (
                    <option value={index} key={index}>
                        {laneLetter(index)} {state.lane.name}
                    </option>
                ))}
            </select>
        </label>
    );
}
