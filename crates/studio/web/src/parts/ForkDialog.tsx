// Dialog to fork a lane into the same run with another setting, beside its parent.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { KNOBS, OTHER, currentValue, freeName, nameOf, readSetting } from "../state/knobs.ts";
import { capacities } from "../state/numbers.ts";
import type { Session } from "../state/session.ts";
import type { Settings } from "../wire/messages.ts";
import { laneLetter } from "./LaneTag.tsx";

/** A setting and its value, chosen from a list or typed. */
export function SettingFields({ path, value, other }: { path: Signal<string>; value: Signal<string>; other: Signal<string> }) {
    const knob = KNOBS.find((one) => one.path === path.value);
    return (
        <>
            <label>
                setting
                <select
                    value={path.value}
                    onChange={(event) => {
                        path.value = event.currentTarget.value;
                        const next = KNOBS.find((one) => one.path === path.value);
                        value.value = next?.values[0] === undefined ? "" : JSON.stringify(next.values[0].value);
                    }}
                >
                    {KNOBS.map((one) => (
                        <option value={one.path} key={one.path}>
                            {one.label}
                        </option>
                    ))}
                    <option value={OTHER}>another setting …</option>
                </select>
            </label>
            {knob === undefined ? (
                <>
                    <label>
                        name of the setting
                        <input type="text" required placeholder="gc.background_watermark, workload.SECTION.OPTION" value={other.value} onInput={(event) => (other.value = event.currentTarget.value)} spellcheck={false} />
                    </label>
                    <label>
                        value
                        <input type="text" required value={value.value} onInput={(event) => (value.value = event.currentTarget.value)} spellcheck={false} />
                    </label>
                </>
            ) : (
                <label>
                    value
                    <select value={value.value} onChange={(event) => (value.value = event.currentTarget.value)}>
                        {knob.values.map((one) => (
                            <option value={JSON.stringify(one.value)} key={one.label}>
                                {one.label}
                            </option>
                        ))}
                    </select>
                </label>
            )}
        </>
    );
}

export function settingOf(path: string, value: string, other: string): Settings {
    if (path === OTHER) return other.trim() === "" ? {} : { [other.trim()]: readSetting(value) };
    return { [path]: JSON.parse(value) as Settings[string] };
}

export function ForkDialog({ session, open }: { session: Session; open: Signal<boolean> }) {
    const dialog = useRef<HTMLDialogElement>(null);
    const lane = useSignal(0);
    const path = useSignal("geometry.over_provisioning");
    const value = useSignal("0.28");
    const other = useSignal("");
    const name = useSignal("");
    useEffect(() => {
        if (open.value) dialog.current?.showModal();
        else dialog.current?.close();
    }, [open.value]);
    const lanes = session.lanes.value;
    const state = lanes[Math.min(lane.value, lanes.length - 1)];
    if (state === undefined) return null;
    const set = settingOf(path.value, value.value, other.value);
    const now = currentValue(state.lane, path.value === OTHER ? other.value.trim() : path.value);
    const suggested = freeName(nameOf(set) || "fork", lanes.map((one) => one.lane.name));
    return (
        <dialog ref={dialog} onClose={() => (open.value = false)} aria-labelledby="fork-title">
            <form
                method="dialog"
                onSubmit={() => {
                    if (Object.keys(set).length > 0) session.fork(lane.value, name.value.trim() || suggested, set);
                }}
            >
                <h2 id="fork-title">Fork at {capacities(state.capacities)} drive writes</h2>
                <p class="note">The fork is a new lane that runs in step. Victim selection, watermarks and the workload change from here. With any other setting, the fork starts from the beginning and catches up.</p>
                {lanes.length > 1 && (
                    <label>
                        lane
                        <select value={lane.value} onChange={(event) => (lane.value = Number(event.currentTarget.value))}>
                            {lanes.map((one, index) => (
                                <option value={index} key={index}>
                                    {laneLetter(index)} {one.lane.name}
                                </option>
                            ))}
                        </select>
                    </label>
                )}
                <SettingFields path={path} value={value} other={other} />
                <p class="note value-now">
                    {now === "" ? "" : `The current value is ${now}.`}
                </p>
                <label>
                    name of the fork
                    <input type="text" value={name.value} placeholder={suggested} maxLength={60} onInput={(event) => (name.value = event.currentTarget.value)} />
                </label>
                <div class="buttons">
                    <button type="submit" class="primary">
                        Fork
                    </button>
                    <button type="button" formNoValidate onClick={() => (open.value = false)}>
                        Cancel
                    </button>
                </div>
            </form>
        </dialog>
    );
}
