// WebSocket connection that reconnects.
//
//   server -> text -> onMessage
//          -> binary -> Frame -> onFrame
//
// After a loss it reconnects with increasing delays up to eight seconds. Before each attempt it
// asks the server if the session still exists. A restarted server does not have it, and then
// `onGone` decides.
import { ApiError, type Api } from "./api.ts";
import { Frame, FrameError } from "./frame.ts";
import type { Command, ServerMessage } from "./messages.ts";

export type Connection = "connecting" | "live" | "lost" | "gone";

const FIRST_WAIT_MS = 300;
const LONGEST_WAIT_MS = 8000;

/** Delay before an attempt, increasing up to a maximum. */
export function waitMs(tries: number): number {
    return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 1.7 ** tries);
}

export interface Listener {
    onConnection(connection: Connection): void;
    onMessage(message: ServerMessage): void;
    onFrame(frame: Frame): void;
    onTrouble(sentence: string): void;
}

export class Live {
    private readonly api: Api;
    private readonly path: string;
    private readonly listener: Listener;
    private readonly isKnown: (api: Api) => Promise<unknown>;
    private socket: WebSocket | null = null;
    private tries = 0;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private closed = false;

    /** `isKnown` succeeds while the server has the session. */
    constructor(api: Api, path: string, isKnown: (api: Api) => Promise<unknown>, listener: Listener) {
        this.api = api;
        this.path = path;
        this.listener = listener;
        this.isKnown = isKnown;
        void this.open();
    }

    private async open(): Promise<void> {
        this.listener.onConnection(this.tries === 0 ? "connecting" : "lost");
        try {
            await this.isKnown(this.api);
        } catch (error) {
            if (this.closed) return;
            if (error instanceof ApiError && error.status === 404) {
                this.closed = true;
                this.listener.onConnection("gone");
                return;
            }
            if (error instanceof ApiError && error.status !== 0) this.listener.onTrouble(error.message);
            this.again();
            return;
        }
        if (this.closed) return;
        const socket = this.api.socket(this.path);
        this.socket = socket;
        socket.onopen = () => {
            this.tries = 0;
            this.listener.onConnection("live");
        };
        socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.take(event.data);
        socket.onclose = () => {
            if (this.socket === socket) this.socket = null;
            if (!this.closed) this.again();
        };
    }

    private take(data: string | ArrayBuffer): void {
        try {
            if (typeof data === "string") this.listener.onMessage(JSON.parse(data) as ServerMessage);
            else this.listener.onFrame(new Frame(data));
        } catch (error) {
            // Reports an unreadable message and ignores it. The next one may be valid.
            if (!(error instanceof FrameError || error instanceof SyntaxError)) throw error;
            this.listener.onTrouble(error.message);
        }
    }

    private again(): void {
        this.tries += 1;
        this.listener.onConnection("lost");
        this.timer = setTimeout(() => void this.open(), waitMs(this.tries - 1));
    }

    /** Returns true if the message was sent. */
    send(command: Command): boolean {
        if (this.socket?.readyState !== WebSocket.OPEN) return false;
        this.socket.send(JSON.stringify(command));
        return true;
    }

    close(): void {
        this.closed = true;
        clearTimeout(this.timer);
        this.socket?.close();
    }
}
