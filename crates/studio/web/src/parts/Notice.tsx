// Notice of one sentence, with the problem and the remedy.
import type { ComponentChildren } from "preact";
import { prose } from "./Prose.tsx";

export function Notice({ kind, onClose, children }: { kind: "error" | "waiting" | "note"; onClose?: () => void; children: ComponentChildren }) {
    return (
        <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
            <p>{prose(children)}</p>
            {onClose !== undefined && (
                <button type="button" class="quiet" onClick={onClose} aria-label="Close">
                    ×
                </button>
            )}
        </div>
    );
}
