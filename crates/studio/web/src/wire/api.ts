// Questions to the server, each with its answer or the server's own sentence.
//
// A token comes once in the address of the page, is kept for this tab only and goes into a header (of a WebSocket: its
// protocol) from then on, so that it does not stay in the address bar or in a link that is copied.
import type { About, Catalogue, Checkpoint, Comparison, FaultsReport, OptionEntry, Order, Problem, SessionEntry } from "./messages.ts";

const TOKEN_KEY = "warp.token";

/** An answer that was no success: the sentence of the server, or what there is to do if it does not answer. */
export class ApiError extends Error {
    readonly status: number;
    /** The line of a text that it is about, if it is about one. */
    readonly line: number | null;
    constructor(status: number, message: string, line: number | null = null) {
        super(message);
        this.status = status;
        this.line = line;
    }
}

/** The least that a session needs of a server. A notebook gives another address and another token than the page. */
export class Api {
    readonly base: string;
    private readonly token: string | null;

    constructor(base: string, token: string | null) {
        this.base = base.replace(/\/+$/, "");
        this.token = token;
    }

    /** The server that this page is from. */
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
                // What is ended is ended even if the page is gone before the answer.
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

    /** What is wrong with a text, which is to be a workload or a plan of faults. */
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

    /** Has the served drive stored now. */
    async snapshot(): Promise<Checkpoint> {
        return (await (await this.ask("POST", "/api/drive/snapshot")).json()) as Checkpoint;
    }

    /** Has its statistics counted from now on: when that is, in milliseconds since 1970. */
    async resetStatistics(): Promise<number> {
        return ((await (await this.ask("POST", "/api/drive/reset-statistics")).json()) as { since_unix_ms: number }).since_unix_ms;
    }

    /** Has it fail as a plan says, in place of the plan before. */
    async planFaults(text: string): Promise<FaultsReport | null> {
        return ((await (await this.ask("POST", "/api/drive/faults", { text })).json()) as { faults: FaultsReport | null }).faults;
    }

    /** Has it fail no more. */
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

/** Bytes as text that an address may hold. */
export function base64url(bytes: Uint8Array): string {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The bytes again. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> {
    const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
    return bytes;
}
