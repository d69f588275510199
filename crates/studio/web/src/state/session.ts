// A session on the page, with its lanes, its messages, and the commands to the server.
//
//   Live -> lanes (LaneState), running, speed, problem -> components
//   components -> play, seek, fork ... -> Live
//
// Frames change each `LaneState` in place. Two signals notify of changes: `drawn` with every frame,
// for drawings, and `told` a few times a second, for text.
import { batch, signal } from "@preact/signals";
import { ApiError, type Api } from "../wire/api.ts";
import type { Frame } from "../wire/frame.ts";
import { Live, type Connection, type Listener } from "../wire/live.ts";
import type { Command, FaultsReport, HostsMessage, Order, ServerMessage, Settings } from "../wire/messages.ts";
import { LaneState } from "./lane.ts";
import { meter } from "./meter.ts";
import { beginsAlike } from "./permalink.ts";

const TOLD_EVERY_MS = 120;

export class Session implements Listener {
    readonly api: Api;
    readonly id: string;
    readonly name = signal("");
    readonly title = signal("");
    readonly lanes = signal<LaneState[]>([]);
    readonly running = signal(false);
    readonly speed = signal<number | null>(null);
    readonly connection = signal<Connection>("connecting");
    readonly problem = signal<string | null>(null);
    readonly order = signal<Order | null>(null);
    readonly hosts = signal<HostsMessage | null>(null);
    /** Fault plan of a served drive. */
    readonly faults = signal<FaultsReport | null>(null);
    readonly drawn = signal(0);
    readonly told = signal(0);
    /** Target of a seek, until the first frame from there. */
    readonly seeking = signal<number | null>(null);
    private live: Live;
    private toldAt = 0;
    private toldTimer: ReturnType<typeof setTimeout> | undefined;

    private constructor(api: Api, id: string, path: string, isKnown: (api: Api) => Promise<unknown>) {
        this.api = api;
        this.id = id;
        this.live = new Live(api, path, isKnown, this);
    }

    static of(api: Api, id: string): Session {
        const path = `/api/sessions/${encodeURIComponent(id)}/live`;
        const session: Session = new Session(api, id, path, async (asked) => {
            const order = await asked.order(id);
            // A restarted server counts sessions from 1 again, so this identifier may belong to
            // another page's session.
            const before = session.order.peek();
            if (before !== null && !beginsAlike(before, order)) throw new ApiError(404, `Session ${id} shows another run now.`);
        });
        return session;
    }

    static ofDrive(api: Api): Session {
        return new Session(api, "drive", "/api/drive/live", (asked) => asked.drive());
    }

    /** True for a served drive, which is controlled by its hosts. */
    get isDrive(): boolean {
        return this.id === "drive";
    }

    onConnection(connection: Connection): void {
        this.connection.value = connection;
    }

    onTrouble(sentence: string): void {
        this.problem.value = sentence;
    }

    onFrame(frame: Frame): void {
        const begun = performance.now();
        const state = this.lanes.value[frame.lane];
        if (state === undefined) return;
        state.apply(frame);
        if (this.seeking.value !== null) this.seeking.value = null;
        this.drawn.value += 1;
        this.tell();
        meter.frame(performance.now() - begun);
    }

    private tell(): void {
        const now = performance.now();
        if (now - this.toldAt >= TOLD_EVERY_MS) {
            this.toldAt = now;
            this.told.value += 1;
        } else {
            this.toldTimer ??= setTimeout(() => {
                this.toldTimer = undefined;
                this.toldAt = performance.now();
                this.told.value += 1;
            }, TOLD_EVERY_MS);
        }
    }

    onMessage(message: ServerMessage): void {
        switch (message.type) {
            case "session":
                batch(() => {
                    this.name.value = message.name ?? message.title;
                    this.title.value = message.title;
                    this.running.value = message.running;
                    this.speed.value = message.speed;
                    this.take(message.lanes);
                });
                if (!this.isDrive) void this.learnOrder();
                break;
            case "error":
                this.problem.value = message.message;
                break;
            case "result":
                this.with(message.lane, (lane) => (lane.result = message.result));
                break;
            case "latency":
                this.with(message.lane, (lane) => (lane.latency = message));
                break;
            case "wear":
                this.with(message.lane, (lane) => (lane.wear = message.wear));
                break;
            case "hosts":
                this.hosts.value = message;
                this.faults.value = message.faults ?? null;
                break;
        }
    }

    private with(lane: number, change: (state: LaneState) => void): void {
        const state = this.lanes.value[lane];
        if (state === undefined) return;
        change(state);
        this.tell();
    }

    /** Unchanged lanes keep their state, so that the page does not flicker when a lane is added. */
    private take(lanes: ConstructorParameters<typeof LaneState>[0][]): void {
        const before = this.lanes.value;
        this.lanes.value = lanes.map((lane, index) => {
            const known = before[index];
            if (known === undefined || !known.fits(lane) || known.lane.name !== lane.name) return new LaneState(lane);
            known.lane = lane;
            return known;
        });
    }

    private async learnOrder(): Promise<void> {
        try {
            this.order.value = await this.api.order(this.id);
        } catch {
            // Without the order there is no permalink. The connection itself reports a lost server.
            this.order.value = null;
        }
    }

    private send(command: Command): void {
        if (!this.live.send(command)) this.problem.value = "The page is not connected, so the command was not sent. The page reconnects automatically.";
        else if (this.problem.value !== null) this.problem.value = null;
    }

    play(): void {
        this.running.value = true;
        this.send({ do: "play" });
    }
    pause(): void {
        this.running.value = false;
        this.send({ do: "pause" });
    }
    setSpeed(hostBytesPerSecond: number | null): void {
        this.speed.value = hostBytesPerSecond;
        this.send({ do: "speed", host_bytes_per_second: hostBytesPerSecond });
    }
    step(requests: number): void {
        this.running.value = false;
        this.send({ do: "step", requests });
    }
    seek(hostBytes: number): void {
        this.seeking.value = hostBytes;
        this.send({ do: "seek", host_bytes: Math.max(0, Math.round(hostBytes)) });
    }
    firstCollection(): void {
        this.running.value = false;
        this.send({ do: "first_collection" });
    }
    fork(lane: number, name: string, set: Settings): void {
        this.send({ do: "fork", lane, name, set });
    }
    drop(lane: number): void {
        this.send({ do: "drop", lane });
    }

    /**
     * Length of the longest lane, which is its write limit, or slightly more than it has written.
     */
    get endBytes(): number {
        let end = 0;
        for (const state of this.lanes.value) {
            end = Math.max(end, state.lane.write_bytes ?? Math.max(state.lane.capacity_bytes, state.hostBytes * 1.1));
        }
        return end;
    }
    get hostBytes(): number {
        return Math.max(0, ...this.lanes.value.map((state) => state.hostBytes));
    }

    close(): void {
        clearTimeout(this.toldTimer);
        this.live.close();
    }
}
