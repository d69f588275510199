// Dialog to edit, check, inject and clear a fault plan of a served drive.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { LateEditor } from "../editor/LateEditor.tsx";
import { faultsSentence } from "../state/actions.ts";
import { short } from "../state/numbers.ts";
import { api } from "../state/server.ts";
import type { Session } from "../state/session.ts";
import { ApiError } from "../wire/api.ts";
import type { FaultsReport, Problem } from "../wire/messages.ts";
import { Notice } from "./Notice.tsx";
import { TwoPress } from "./TwoPress.tsx";

const EXAMPLE = `# docs/reference/faults.md describes all fields
seed = 1

[[fault]]
name = "bad blocks"
kind = "error"
commands = ["read"]
blocks = { first = 0, count = 64 }
`;

export function FaultsTable({ report }: { report: FaultsReport }) {
    return (
        <div class="scroll" role="group" aria-label="Planned faults" tabIndex={0}>
            <table class="numbers">
                <thead>
                    <tr>
                        <th scope="col">fault</th>
                        <th scope="col">kind</th>
                        <th scope="col">now</th>
                        <th scope="col">occurred</th>
                    </tr>
                </thead>
                <tbody>
                    {report.faults.map((fault, index) => (
                        <tr key={index}>
                            <th scope="row">{fault.name}</th>
                            <td>{fault.kind}</td>
                            <td>{fault.active ? "active" : "–"}</td>
                            <td>{short(fault.struck)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

export function FaultsDialog({ session, open }: { session: Session; open: Signal<boolean> }) {
    const dialog = useRef<HTMLDialogElement>(null);
    const text = useSignal(EXAMPLE);
    const problems = useSignal<Problem[]>([]);
    const said = useSignal<{ kind: "note" | "error"; sentence: string } | null>(null);
    const isBusy = useSignal(false);
    useEffect(() => {
        if (open.value) dialog.current?.showModal();
        else dialog.current?.close();
    }, [open.value]);
    const act = async (action: () => Promise<FaultsReport | null>) => {
        isBusy.value = true;
        said.value = null;
        try {
            session.faults.value = await action();
            said.value = { kind: "note", sentence: faultsSentence(session.faults.value) };
        } catch (error) {
            const sentence = error instanceof Error ? error.message : String(error);
            // Problems of the text appear at their lines in the editor.
            if (error instanceof ApiError && error.line !== null) problems.value = [{ line: error.line, message: sentence.replace(/^line \d+: /, "") }];
            else said.value = { kind: "error", sentence };
        }
        isBusy.value = false;
    };
    const report = session.faults.value;
    return (
        <dialog ref={dialog} class="wide" onClose={() => (open.value = false)} aria-labelledby="faults-title">
            <div class="faults">
                <h2 id="faults-title">Faults</h2>
                <p class="note">
                    A plan names the commands that fail and the time of the failure. It replaces the previous plan. Its effects on data are permanent, and a <code>power_loss</code> stops the server.
                </p>
                {open.value && <LateEditor text={text} problems={problems} check={() => api.check("faults.toml", text.peek(), "faults")} label="Fault plan" />}
                {said.value !== null && <Notice kind={said.value.kind}>{said.value.sentence}</Notice>}
                {report !== null && <FaultsTable report={report} />}
                <div class="buttons">
                    <TwoPress text="Inject this plan" again="Press again to inject" isPrimary isBusy={isBusy.value} onAct={() => void act(() => api.planFaults(text.peek()))} />
                    {report !== null && <TwoPress text="Clear all" again="Press again to clear" isBusy={isBusy.value} onAct={() => void act(() => api.clearFaults())} />}
                    <button type="button" onClick={() => (open.value = false)}>
                        Close
                    </button>
                </div>
            </div>
        </dialog>
    );
}
