// A sentence whose commands and names stand between backticks, as the server and the command write them.

/** What is between backticks becomes code. */
export function Prose({ children }: { children: string }) {
    return <>{children.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

/** Sentences among other children are read as such. */
export function prose(children: preact.ComponentChildren): preact.ComponentChildren {
    if (typeof children === "string") return <Prose>{children}</Prose>;
    return Array.isArray(children) ? children.map((child) => prose(child as preact.ComponentChildren)) : children;
}
