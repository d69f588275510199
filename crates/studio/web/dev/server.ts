// Server of the studio's protocol for the simulated drive (drive.ts), as a plugin of Vite. `npm run
// dev` uses it, and `npm run preview` for the built page. The catalogue is that of the repository.
// SIMULATED_UNITS sets the number of units (default 1000, or 65,536 for scales of 1/16 and larger).
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse, Server } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { parse } from "smol-toml";
import type { Plugin } from "vite";
import { WebSocketServer, type WebSocket } from "ws";
import type { Catalogue, Command, Order, Problem, SessionMessage, Settings } from "../src/wire/messages.ts";
import { SimulatedDrive, type DriveConfig } from "./drive.ts";

const REPOSITORY = join(import.meta.dirname, "../../../..");
const FRAME_MS = 1000 / 30;

type Table = Record<string, unknown>;

function stems(folder: string, ending: string): string[] {
    return readdirSync(join(REPOSITORY, folder)).filter((name) => name.endsWith(ending)).map((name) => name.slice(0, name.length - ending.length)).sort();
}

function read(path: string): string {
    return readFileSync(join(REPOSITORY, path), "utf8");
}

/** Returns the first sentence of the comment at the top of a text. */
function about(text: string): string {
    const comment = /^(?:[;#].*\n)+/.exec(text)?.[0].replace(/^[;#]\s*/gm, "").replaceAll("\n", " ") ?? "";
    return comment.split(/(?<=\.)\s/)[0] ?? "";
}

function catalogue(): Catalogue {
    const experiments = readdirSync(join(REPOSITORY, "experiments")).sort().map((name) => {
        const table = parse(read(`experiments/${name}/experiment.toml`)) as Table;
        const grid = (table["grid"] as Table[] | undefined) ?? [];
        return {
            name,
            title: String(table["title"]),
            devices: table["devices"] as string[],
            variants: ((table["variants"] as Table[] | undefined) ?? []).map((one) => String(one["name"])),
            axes: grid.map((axis) => ({ name: String(axis["axis"]), values: ((axis["values"] ?? axis["over"]) as (Table | number)[]).map((one) => (typeof one === "object" ? String(one["name"]) : String(one))) })),
            seconds: 9,
        };
    });
    return {
        experiments,
        devices: stems("devices", ".toml").map((name) => {
            const text = read(`devices/${name}.toml`);
            return { name, title: /^title = "(.*)"/m.exec(text)?.[1] ?? name, capacity_bytes: 7.68e12, timed: text.includes("[timing") };
        }),
        jobs: stems("jobs", ".fio").map((name) => ({ name, title: about(read(`jobs/${name}.fio`)) })),
        workloads: stems("workloads", ".toml").map((name) => ({ name, title: about(read(`workloads/${name}.toml`)) })),
    };
}

function options(): { name: string; help: string; values: string[] }[] {
    const rows = read("docs/reference/job-files.md").matchAll(/^\| `(\w+)`[^|]*\| ([^|]*) \| ([^|]*) \|/gm);
    const values: Record<string, string[]> = { rw: ["read", "write", "randread", "randwrite", "rw", "randrw", "trim"], dataplacement: ["none", "fdp"], random_distribution: ["random", "zipf:1.2", "zoned:80/20:20/80"], ioengine: ["io_uring_cmd"], cmd_type: ["nvme"] };
    return [...rows].map((row) => ({ name: row[1] as string, help: row[3] as string, values: values[row[1] as string] ?? [] }));
}

function problemsOf(text: string): Problem[] {
    const known = new Set([...options().map((one) => one.name), ...["filename", "ioengine", "cmd_type", "dataplacement", "plids", "stonewall"]]);
    return text.split("\n").flatMap((line, index): Problem[] => {
        const name = /^\s*(\w+)\s*(?:=|$)/.exec(line)?.[1];
        return name === undefined || known.has(name) || !/fio|\[/.test(text) ? [] : [{ line: index + 1, message: `${name}: no such option; \`warp show fio-options\` lists those that are understood` }];
    });
}

class SimulatedSession {
    drives: SimulatedDrive[];
    configs: DriveConfig[];
    running = false;
    speed: number | null = null;
    target = 0;
    seeking = false;
    looking = false;
    readonly begunUnixMs = Date.now();
    private sockets = new Set<WebSocket>();
    private last = performance.now();
    readonly id: string;
    readonly order: Order;
    readonly isDrive: boolean;
    private ticks = 0;
    readonly timer: ReturnType<typeof setInterval>;

    constructor(id: string, order: Order, isDrive = false) {
        this.id = id;
        this.order = order;
        this.isDrive = isDrive;
        const isLarge = ["1/1", "1/2", "1/4", "1/8", "1/16"].includes(order.scale ?? "");
        const units = isLarge ? 65536 : Number(process.env["SIMULATED_UNITS"] ?? 1000);
        this.configs = order.lanes.map((lane): DriveConfig => {
            const words = `${lane.name} ${lane.variants.join(" ")} ${JSON.stringify(lane.set)}`;
            return {
                name: lane.name,
                device: order.device ?? "warp_default",
                workload: order.experiment ?? order.workload?.name ?? "",
                scale: order.scale ?? "1/512",
                seed: order.seed,
                units,
                unitPages: isLarge ? 32 : 128,
                groups: 4,
                timed: order.timed === true,
                placement: /NoFDP|none|nobody/.test(words) ? "NoFDP" : /Mixed/.test(words) ? "Mixed" : "FDP",
                settings: lane.set,
                writeCapacities: order.drive_writes ?? 4,
                of: null,
                forked: null,
            };
        });
        for (const fork of order.forks) this.configs.push(this.forkOf(fork.of, fork.name, fork.set));
        this.drives = this.configs.map((config) => new SimulatedDrive(config));
        this.running = isDrive;
        if (isDrive) this.speed = (this.drives[0] as SimulatedDrive).lane.capacity_bytes * 0.05;
        this.timer = setInterval(() => this.tick(), FRAME_MS);
    }

    private forkOf(of: number, name: string, set: Settings): DriveConfig {
        const parent = this.configs[of] as DriveConfig;
        return { ...parent, name, of, settings: { ...parent.settings, ...set }, forked: Object.keys(set).every((path) => path.startsWith("gc.")) ? "here" : "start" };
    }

    private get capacity(): number {
        return (this.drives[0] as SimulatedDrive).lane.capacity_bytes / 4096;
    }

    private tick(): void {
        const now = performance.now();
        const seconds = Math.min(0.2, (now - this.last) / 1000);
        this.last = now;
        this.ticks += 1;
        if (this.running && !this.seeking) this.target = this.speed === null ? Number.MAX_SAFE_INTEGER : Math.max(this.target, this.slowest()) + (this.speed * seconds) / 4096;
        const lanes = this.drives.length;
        const step = Math.max(64, this.capacity / 50);
        const until = now + FRAME_MS * 0.7;
        // Lanes advance together. No lane is ahead by more than a fiftieth of the capacity.
        while (performance.now() < until) {
            const slowest = this.slowest();
            if (slowest >= this.target || this.drives.every((drive) => drive.phase === "ended")) break;
            for (const drive of this.drives) drive.advance(Math.min(this.target, slowest + step), until + 2 * lanes);
        }
        if (this.slowest() >= this.target) this.seeking = false;
        if (this.looking && this.drives.some((drive) => drive.collections > 0)) {
            this.looking = this.seeking = false;
            this.target = this.slowest();
        }
        for (const socket of this.sockets) if (socket.bufferedAmount < 1 << 20) this.drives.forEach((drive, index) => socket.send(drive.frame(index, !this.running)));
        if (this.ticks % 30 === 0) this.tellTimes();
    }

    private slowest(): number {
        return Math.min(...this.drives.map((drive) => drive.hostPages));
    }

    private tellTimes(): void {
        this.drives.forEach((drive, lane) => {
            if (!drive.lane.timed || drive.hostPages === 0) return;
            const waf = drive.mediaPages / drive.hostPages;
            const seconds = Array.from({ length: 120 }, (_, i) => (i * drive.nowNs) / 120e9);
            const job = (name: string, direction: string, p50: number) => ({ name, direction, iops: 80_000 / waf, bytes_per_second: 3.2e8 / waf, mean_ns: p50 * 1.1, p50_ns: p50, p99_ns: p50 * 1.6 * waf, p999_ns: p50 * 3 * waf, p9999_ns: p50 * 8 * waf, waited_share: (waf - 1) / 20 });
            this.say({ type: "latency", lane, jobs: [job("sequential", "write", 21_000), job("random", "write", 16_000), job("reader", "read", 70_000)], series: { seconds, host_bytes_per_second: seconds.map((at) => 2.4e9 / (1 + (waf - 1) * (at / (seconds.at(-1) || 1))) + 1e8 * Math.sin(at * 900)), collection_bytes_per_second: seconds.map((at) => 2.4e9 * (waf - 1) * (at / (seconds.at(-1) || 1))) } });
        });
        if (this.isDrive) {
            const host = (name: string, transport: string, iops: number) => ({ host: name, controller: transport === "NVMe/TCP" ? 2 : 1, transport, namespace: 1, iops, bytes_per_second: iops * 4096, queue_depth: 31.2, latency_ns: { p50: 81_000, p99: 190_000, p999: 840_000 } });
            this.say({ type: "hosts", hosts: [host("nqn.2014-08.org.nvmexpress:uuid:7f1c", "NVMe/TCP", 41_200), host("guest", "vfio-user", 128_700)], wear: { fewest: 12, mean: 19.4, most: 31, step: 1, blocks: Array.from({ length: 20 }, (_, bar) => Math.round(900 * Math.exp(-((12 + bar - 19) ** 2) / 30))) } });
        }
    }

    say(message: object): void {
        for (const socket of this.sockets) socket.send(JSON.stringify(message));
    }

    message(): SessionMessage {
        const first = this.order.experiment ?? this.order.workload?.name ?? "";
        return { type: "session", id: this.id, name: this.order.name ?? `${first} on ${this.order.device ?? "its devices"}`, title: this.isDrive ? "ssd_a, 8 GiB, served at 127.0.0.1:4420" : `${first} on ${this.order.device ?? "its devices"} (simulated)`, lanes: this.drives.map((drive) => drive.lane), speed: this.speed, running: this.running };
    }

    attach(socket: WebSocket): void {
        this.sockets.add(socket);
        socket.send(JSON.stringify(this.message()));
        for (const drive of this.drives) drive.whole = true;
        socket.on("message", (data) => this.carryOut(JSON.parse(String(data)) as Command));
        socket.on("close", () => this.sockets.delete(socket));
    }

    private again(): void {
        this.drives = this.configs.map((config) => new SimulatedDrive(config));
    }

    private carryOut(command: Command): void {
        switch (command.do) {
            case "play":
                this.target = this.slowest();
                this.running = true;
                break;
            case "pause":
                this.running = false;
                this.target = this.slowest();
                break;
            case "speed":
                this.speed = command.host_bytes_per_second;
                this.target = this.slowest();
                break;
            case "step":
                this.running = false;
                this.target = this.slowest() + command.requests * 8;
                break;
            case "seek": {
                const pages = Math.floor(command.host_bytes / 4096);
                if (pages < this.slowest()) this.again();
                this.target = pages;
                this.seeking = true;
                break;
            }
            case "first_collection":
                this.running = false;
                if (this.drives.some((drive) => drive.collections > 0)) this.again();
                this.target = Number.MAX_SAFE_INTEGER;
                this.seeking = this.looking = true;
                break;
            case "fork": {
                const at = this.slowest();
                const op = Number(command.set["geometry.over_provisioning"] ?? 0.1);
                if (!(op >= 0.01 && op <= 1)) {
                    this.say({ type: "error", message: `geometry.over_provisioning: ${op}: must be between 0.01 and 1` });
                    return;
                }
                this.configs.push(this.forkOf(command.lane, command.name, command.set));
                this.order.forks.push({ of: command.lane, name: command.name, at_host_bytes: at * 4096, set: command.set });
                this.drives.push(new SimulatedDrive(this.configs.at(-1) as DriveConfig));
                this.target = at;
                this.seeking = true;
                this.say(this.message());
                break;
            }
            case "drop":
                this.configs.splice(command.lane, 1);
                this.drives.splice(command.lane, 1);
                this.order.forks.splice(command.lane - this.order.lanes.length, 1);
                for (const drive of this.drives) drive.whole = true;
                this.say(this.message());
                break;
        }
    }

    end(): void {
        clearInterval(this.timer);
        for (const socket of this.sockets) socket.close();
    }
}

const sessions = new Map<string, SimulatedSession>();
let made = 0;
let served: SimulatedSession | null = null;

function servedDrive(): SimulatedSession {
    served ??= new SimulatedSession("drive", { experiment: null, workload: { name: "served" }, device: "ssd_a", scale: "1/512", drive_writes: 40, precondition_drive_writes: null, timed: true, seed: 1, lanes: [{ name: "served drive", variants: ["FDP"], set: {} }], forks: [] }, true);
    return served;
}

async function body(request: IncomingMessage): Promise<string> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    return Buffer.concat(parts).toString("utf8");
}

const RUNS = [
    ["9f31c0aa", "2026-11-23T18:02:11Z", "three_stream", "Three streams: sequential, uniform random, and overwrites of the sequential region", ["ssd_a", "ssd_b"], 18, [1.052, 2.914], 9.1],
    ["1be77d02", "2026-11-23T18:09:40Z", "two_stream", "Two streams on disjoint parts of the drive", ["ssd_a"], 8, [1.011, 1.873], 5.2],
    ["c04ad915", "2026-11-24T09:41:03Z", "noisy_neighbour", "A cache and a noisy neighbour on one drive", ["ssd_a"], 1, [2.75, 2.75], 31.4],
].map(([id, at, target, title, devices, runs, waf_range, seconds]) => ({ id, at, target, title, devices, runs, waf: runs === 1 ? (waf_range as number[])[0] : null, waf_range, seconds, warp: "simulated", engine: "simulated" }));

/** The simulated drive accepts any fault plan. */
async function problems(request: IncomingMessage): Promise<Problem[]> {
    const asked = JSON.parse(await body(request)) as { text: string; kind?: string };
    return asked.kind === "faults" ? [] : problemsOf(asked.text);
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const json = (value: unknown, status = 200) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(value));
    };
    const [, , what, id, part, form] = path.split("/");
    const session = id === undefined ? undefined : sessions.get(id);
    switch (`${request.method} ${what}`) {
        case "GET about":
            return json({ version: "simulated", drive: true, actions: true });
        case "GET catalogue":
            return json(catalogue());
        case "GET options":
            return json(options());
        case "POST check":
            return json({ problems: await problems(request) });
        case "GET runs":
            return json(RUNS);
        case "GET compare": {
            const side = (name: string | undefined) => ({ name, about: `${name} (simulated)`, notes: [] });
            const row = (cell: string, a: number, b: number) => ({ cell, metric: "WAF", a, b, share: b / a - 1, interval: null, seeds: [1, 1], verdict: "one_seed" });
            return json({ a: side(id), b: side(part), rows: [row("FDP | 80/20", 1.69, 1.61), row("NoFDP | 80/20", 2.32, 2.41)], only_a: ["Mixed | 80/20"], only_b: [] });
        }
        case "GET drive":
            return json({ device: "ssd_a" });
        case "POST drive":
        case "DELETE drive": {
            // The simulated drive has no faults and no storage.
            if (id !== "faults") return json({ error: "the simulated drive is served without files" }, 409);
            return json({ faults: request.method === "DELETE" ? null : { seed: 1, commands: 0, faults: [{ name: "bad blocks", kind: "error", active: true, struck: 0 }] } });
        }
        case "GET text": {
            const ending = { jobs: ".fio", workloads: ".toml", devices: ".toml", experiments: "/experiment.toml" }[id ?? ""] ?? "";
            response.end(read(`${id}/${part}${ending}`));
            return;
        }
        case "POST sessions": {
            if (session !== undefined) {
                session.order.name = (JSON.parse(await body(request)) as { name: string }).name;
                session.say(session.message());
                response.writeHead(204).end();
                return;
            }
            made += 1;
            const name = `s${made}`;
            sessions.set(name, new SimulatedSession(name, JSON.parse(await body(request)) as Order));
            return json({ id: name }, 201);
        }
        case "GET sessions":
            if (id === undefined || id === "") return json([...sessions.values()].map((one) => ({ id: one.id, name: one.message().name, begun_unix_ms: one.begunUnixMs, title: one.message().title, phase: one.running ? "running" : "paused", lanes: one.drives.length })));
            if (session === undefined) return json({ error: `no session ${id}; it may have ended` }, 404);
            if (part === "order") return json(session.order);
            response.end(`the simulated drive exports nothing as ${form}\n`);
            return;
        case "DELETE sessions":
            session?.end();
            sessions.delete(id ?? "");
            response.writeHead(204).end();
            return;
        default:
            return json({ error: `no ${path} here` }, 404);
    }
}

function upgrade(sockets: WebSocketServer, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const found = path === "/api/drive/live" ? servedDrive() : sessions.get(/^\/api\/sessions\/([^/]+)\/live$/.exec(path)?.[1] ?? "");
    if (!path.startsWith("/api/")) return;
    if (found === undefined) {
        socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
        return;
    }
    sockets.handleUpgrade(request, socket, head, (attached) => found.attach(attached));
}

export function simulatedDrive(): Plugin {
    const listen = (httpServer: Server | null) => {
        const sockets = new WebSocketServer({ noServer: true });
        httpServer?.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => upgrade(sockets, request, socket, head));
    };
    const middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => {
        if (!(request.url ?? "").startsWith("/api/")) return next();
        answer(request, response).catch((error: unknown) => {
            response.writeHead(400, { "content-type": "application/json" });
            response.end(JSON.stringify({ error: String(error) }));
        });
    };
    return {
        name: "simulated-drive",
        configureServer(server) {
            server.middlewares.use(middleware);
            listen(server.httpServer as Server | null);
        },
        configurePreviewServer(server) {
            server.middlewares.use(middleware);
            listen(server.httpServer as Server);
        },
    };
}
