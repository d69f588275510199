// Requests to the server. Each returns its answer, or throws the server's message.
//
// The page's address contains the token once. The page stores it for this tab and then sends it in
// a header, or as the protocol of a WebSocket. So the token does not remain in the address bar or
// in a copied link.
import type { About, Catalogue, Checkpoint, Comparison, FaultsReport, OptionEntry, Order, Problem, SessionEntry } from "./messages.ts";

const TOKEN_KEY = "warp.token";

/** Error answer, with the server's message or a remedy if the server does not answer. */
export class ApiError extends Error {
    readonly status: number;
    /** Line of the text with the error, if it has one. */
    readonly line: number | null;
    constructor(status: number, message: string, line: number | null = null) {
        super(message);
        this.status = status;
        this.line = line;
    }
}

/** Requests that a session needs. A notebook uses another address and token than the page. */
export class Api {
    readonly base: string;
    private readonly token: string | null;

    constructor(base: string, token: string | null) {
        this.base = base.replace(/\/+$/, "");
        this.token = token;
    }

    /** Server of this page. */
    static ofPage(): Api {
        const here = new URL(location.href);
        const given = here.searchParams.get("token");
        if (given !== null) {
            sessionStorage.setItem(TOKEN_KEY, given);
            here.searchParams.delete("token");
            history.replaceState(null, "", here);
        }
        return new Api(here.origin, sessionStorage.getItem(TOKEN_KEY));
    }

    private async ask(method: string, path: string, body?: unknown): Promise<Response> {
        const headers: Record<string, string> = {};
        if (this.token !== null) headers["Authorization"] = `Bearer ${this.token}`;
        if (body !== undefined) headers["Content-Type"] = "application/json";
        let response: Response;
        try {
            response = await fetch(this.base + path, {
                method,
                headers,
                body: body === undefined ? null : JSON.stringify(body),
                // The request completes even if the page closes before the answer.
                keepalive: method === "DELETE",
            });
        } catch {
            throw new ApiError(0, "The server does not answer. Start it again with `warp studio`. The page then reconnects automatically.");
        }
        if (response.ok) return response;
        const said: unknown = await response.json().catch(() => null);
        const sentence =
            typeof said === "object" && said !== null && "error" in said && typeof said.error === "string"
                ? said.error
                : `The server answered ${response.status} to ${method} ${path}.`;
        const line = typeof said === "object" && said !== null && "line" in said && typeof said.line === "number" ? said.line : null;
        throw new ApiError(response.status, sentence, line);
    }

    private async json<T>(path: string): Promise<T> {
        return (await (await this.ask("GET", path)).json()) as T;
    }

    about = (): Promise<About> => this.json("/api/about");
    catalogue = (): Promise<Catalogue> => this.json("/api/catalogue");
    options = (): Promise<OptionEntry[]> => this.json("/api/options");
    sessions = (): Promise<SessionEntry[]> => this.json("/api/sessions");
    runs = (): Promise<Record<string, unknown>[]> => this.json("/api/runs");
    compare = (one: string, other: string): Promise<Comparison> => this.json(`/api/compare/${encodeURIComponent(one)}/${encodeURIComponent(other)}`);
    drive = (): Promise<Record<string, unknown>> => this.json("/api/drive");
    order = (id: string): Promise<Order> => this.json(`/api/sessions/${encodeURIComponent(id)}/order`);

    async text(kind: "jobs" | "workloads" | "devices" | "experiments", name: string): Promise<string> {
        return (await this.ask("GET", `/api/text/${kind}/${encodeURIComponent(name)}`)).text();
    }

    /** Checks the text of a workload or a fault plan. */
    async check(name: string, text: string, kind: "workload" | "faults" = "workload"): Promise<Problem[]> {
        const answer = (await (await this.ask("POST", "/api/check", { name, text, kind })).json()) as { problems: Problem[] };
        return answer.problems;
    }

    async begin(order: Order): Promise<string> {
        return ((await (await this.ask("POST", "/api/sessions", order)).json()) as { id: string }).id;
    }

    async end(id: string): Promise<void> {
        await this.ask("DELETE", `/api/sessions/${encodeURIComponent(id)}`);
    }

    async rename(id: string, name: string): Promise<void> {
        await this.ask("POST", `/api/sessions/${encodeURIComponent(id)}/name`, { name });
    }

    async export(id: string, form: string): Promise<Blob> {
        return (await this.ask("GET", `/api/sessions/${encodeURIComponent(id)}/export/${form}`)).blob();
    }

    /** Stores the served drive now. */
    async snapshot(): Promise<Checkpoint> {
        return (await (await this.ask("POST", "/api/drive/snapshot")).json()) as Checkpoint;
    }

    /** Resets the statistics of the served drive. Returns the time, milliseconds since 1970. */
    async resetStatistics(): Promise<number> {
        return ((await (await this.ask("POST", "/api/drive/reset-statistics")).json()) as { since_unix_ms: number }).since_unix_ms;
    }

    /** Replaces the fault plan. */
    async planFaults(text: string): Promise<FaultsReport | null> {
        return ((await (await this.ask("POST", "/api/drive/faults", { text })).json()) as { faults: FaultsReport | null }).faults;
    }

    /** Clears all faults. */
    async clearFaults(): Promise<FaultsReport | null> {
        return ((await (await this.ask("DELETE", "/api/drive/faults")).json()) as { faults: FaultsReport | null }).faults;
    }

    socket(path: string): WebSocket {
        const address = this.base.replace(/^http/, "ws") + path;
        const protocols = this.token === null ? [] : [`warp.token.${base64url(new TextEncoder().encode(this.token))}`];
        const socket = new WebSocket(address, protocols);
        socket.binaryType = "arraybuffer";
        return socket;
    }
}

/** Encodes bytes as text for an address. */
export function base64url(bytes: Uint8Array): string {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** Decodes such a text. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
    const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
    return bytes;
}
