// Button that asks for confirmation before an irreversible action.
import { useEffect, useMemo } from "preact/hooks";
import { Confirmation } from "../state/actions.ts";

interface TwoPressProps {
    text: string;
    /** Label after the first press. */
    again: string;
    isPrimary?: boolean;
    /** Subject of the button, if the page has several such buttons. */
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
            // A busy button keeps the focus, which a disabled one would lose.
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
