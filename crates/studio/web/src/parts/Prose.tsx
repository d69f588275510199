// Sentence with commands and names between backticks, as the server and the command write them.

/** Renders text between backticks as code. */
export function Prose({ children }: { children: string }) {
    return <>{children.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

/** Renders each text among the children in this way. */
export function prose(children: preact.ComponentChildren): preact.ComponentChildren {
    if (typeof children === "string") return <Prose>{children}</Prose>;
    return Array.isArray(children) ? children.map((child) => prose(child as preact.ComponentChildren)) : children;
}
