// A button that asks once more before it does something that cannot be taken back.
import { useEffect, useMemo } from "preact/hooks";
import { Confirmation } from "../state/actions.ts";

interface TwoPressProps {
    text: string;
    /** What it says when it was pressed once. */
    again: string;
    isPrimary?: boolean;
    /** What it is about, where several are on the page. */
    of?: string;
    isBusy: boolean;
    onAct: () => void;
}

export function TwoPress({ text, again, isPrimary = false, of = "", isBusy, onAct }: TwoPressProps) {
    const confirmation = useMemo(() => new Confirmation(), []);
    useEffect(() => () => confirmation.forget(), [confirmation]);
    const isAsked = confirmation.isAsked.value;
    return (
        <button
            type="button"
            class={`two-press${isPrimary ? " primary" : ""}`}
            data-asked={isAsked}
            // It keeps the focus while it is busy, which a disabled one would not.
            aria-disabled={isBusy}
            onClick={() => {
                if (!isBusy && confirmation.press()) onAct();
            }}
            onBlur={() => confirmation.forget()}
        >
            {/* Both are there, so that it is as wide before as after. */}
            <span aria-hidden={isAsked}>
                {text}
                {of !== "" && <i class="hidden"> {of}</i>}
            </span>
            <span aria-hidden={!isAsked}>{again}</span>
        </button>
    );
}
