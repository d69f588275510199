// Loads the editor on first use, because it is larger than the rest of the page.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Notice } from "../parts/Notice.tsx";
import type { EditorProps } from "./Editor.tsx";

export function LateEditor(props: EditorProps) {
    const [loaded, setLoaded] = useState<{ Editor: (props: EditorProps) => JSX.Element } | null>(null);
    const [isLost, setLost] = useState(false);
    useEffect(() => {
        import("./Editor.tsx").then(setLoaded, () => setLost(true));
    }, []);
    if (isLost) return <Notice kind="error">The editor could not be loaded. Reload the page when the server answers again.</Notice>;
    return loaded === null ? <div class="editor skeleton" aria-busy="true" /> : <loaded.Editor {...props} />;
}
