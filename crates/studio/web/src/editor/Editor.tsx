// Editor for job files, workloads and fault plans, with completion of supported options and the
// engine's messages at their lines.
//
// It is a separate bundle, loaded on first use.
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { effect, type Signal } from "@preact/signals";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../state/theme.ts";
import { Prose } from "../parts/Prose.tsx";
import { api } from "../state/server.ts";
import type { OptionEntry, Problem } from "../wire/messages.ts";

const CHECK_AFTER_MS = 350;

/** Syntax of job files and TOML, which share sections, comments, names and values. */
const language = StreamLanguage.define<{ isValue: boolean }>({
    startState: () => ({ isValue: false }),
    token(stream, state) {
        if (stream.sol()) state.isValue = false;
        if (stream.eatSpace()) return null;
        if (!state.isValue && stream.match(/^[;#].*/)) return "comment";
        if (stream.sol() && stream.match(/^\[.*\]/)) return "heading";
        if (stream.eat("=")) {
            state.isValue = true;
            return "operator";
        }
        if (!state.isValue) {
            stream.match(/^[^=\s]+/) || stream.next();
            return "propertyName";
        }
        if (stream.match(/^"[^"]*"?/)) return "string";
        if (stream.match(/^\d[\w.%]*/)) return "number";
        stream.next();
        stream.match(/^[^\d"]*/);
        return "string";
    },
});

const highlight = HighlightStyle.define([
    { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
    { tag: tags.heading, color: "var(--ink)", fontWeight: "700" },
    { tag: tags.propertyName, color: "var(--code-name)" },
    { tag: tags.number, color: "var(--code-value)" },
    { tag: tags.string, color: "var(--code-value)" },
]);

let options: Promise<OptionEntry[]> | null = null;

async function complete(context: CompletionContext): Promise<CompletionResult | null> {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    if (/^\s*[;#[]/.test(before)) return null;
    options ??= api.options();
    const known = await options.catch((): OptionEntry[] => {
        options = null;
        return [];
    });
    const equals = before.indexOf("=");
    if (equals < 0) {
        const word = context.matchBefore(/[\w_]*/);
        if (word === null || (word.from === word.to && !context.explicit)) return null;
        return { from: word.from, options: known.map((one) => ({ label: one.name, info: one.help, type: "property", apply: `${one.name}=` })), validFor: /^[\w_]*$/ };
    }
    const option = known.find((one) => one.name === before.slice(0, equals).trim());
    if (option === undefined || option.values.length === 0) return null;
    return { from: line.from + equals + 1, options: option.values.map((value) => ({ label: value, type: "constant" })), validFor: /^[\w_:%/.]*$/ };
}

function diagnostics(state: EditorState, problems: Problem[]): Diagnostic[] {
    return problems.map((problem) => {
        const line = state.doc.line(Math.min(Math.max(1, problem.line ?? 1), state.doc.lines));
        return { from: line.from, to: Math.max(line.to, line.from), severity: "error" as const, message: problem.message };
    });
}

export interface EditorProps {
    text: Signal<string>;
    problems: Signal<Problem[]>;
    /** Problems of the current text. */
    check: () => Promise<Problem[]>;
    /** Label for screen readers. */
    label: string;
    /** True to complete fio's options. */
    completes?: boolean;
}

export function Editor({ text, problems, check: ask, label, completes = false }: EditorProps) {
    const place = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const element = place.current;
        if (element === null) return;
        const looks = new Compartment();
        const look = () => EditorView.theme({}, { dark: isDark.peek() });
        let timer: ReturnType<typeof setTimeout> | undefined;
        let asked = 0;
        const check = () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                asked += 1;
                const mine = asked;
                ask().then(
                    (found) => {
                        if (mine !== asked) return;
                        problems.value = found;
                        view.dispatch(setDiagnostics(view.state, diagnostics(view.state, found)));
                    },
                    () => {
                        // Without an answer, the text counts as valid. The server checks it again
                        // when it runs.
                        if (mine === asked) problems.value = [];
                    },
                );
            }, CHECK_AFTER_MS);
        };
        const view = new EditorView({
            parent: element,
            state: EditorState.create({
                doc: text.peek(),
                extensions: [
                    lineNumbers(),
                    history(),
                    drawSelection(),
                    highlightActiveLine(),
                    lintGutter(),
                    language,
                    syntaxHighlighting(highlight),
                    ...(completes ? [autocompletion({ override: [complete] })] : []),
                    keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap]),
                    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
                    looks.of(look()),
                    EditorView.updateListener.of((update) => {
                        if (!update.docChanged) return;
                        text.value = update.state.doc.toString();
                        check();
                    }),
                ],
            }),
        });
        const stopFollowing = effect(() => {
            const wanted = text.value;
            if (wanted === view.state.doc.toString()) return;
            view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: wanted } });
        });
        const stopLooking = effect(() => {
            isDark.value;
            view.dispatch({ effects: looks.reconfigure(look()) });
        });
        check();
        return () => {
            clearTimeout(timer);
            stopFollowing();
            stopLooking();
            view.destroy();
        };
    }, []);
    return (
        <>
            <div class="editor" ref={place} />
            <ul class="problems" aria-live="polite">
                {problems.value.map((problem) => (
                    <li key={`${problem.line} ${problem.message}`}>
                        {problem.line !== null && <b>line {problem.line}</b>} <Prose>{problem.message}</Prose>
                    </li>
                ))}
            </ul>
        </>
    );
}
