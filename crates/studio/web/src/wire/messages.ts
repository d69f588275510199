// Types of the JSON messages between page and server.

export interface Order {
    /** Name of the session. By default its experiment or workload. */
    name?: string;
    experiment: string | null;
    workload: { name: string; text?: string } | null;
    device: string | null;
    scale: string | null;
    drive_writes: number | null;
    precondition_drive_writes: number | null;
    timed: boolean | null;
    seed: number;
    /** Array of the devices, as `--array` of `warp run`. Each drive becomes a lane. */
    array?: string;
    lanes: OrderLane[];
    forks: OrderFork[];
    /** Run options that the page does not show, by their names in `[run]` of an experiment. */
    [option: string]: unknown;
}

export interface OrderLane {
    name: string;
    variants: string[];
    set: Settings;
    /** Drive of the array that the lane shows. */
    drive?: number;
}

export interface OrderFork {
    of: number;
    name: string;
    at_host_bytes: number;
    set: Settings;
}

export type Setting = string | number | boolean | { [key: string]: number };
export type Settings = Record<string, Setting>;

export interface About {
    version: string;
    drive: boolean;
    actions: boolean;
}

export interface Catalogue {
    experiments: ExperimentEntry[];
    devices: DeviceEntry[];
    jobs: NamedEntry[];
    workloads: NamedEntry[];
}

export interface NamedEntry {
    name: string;
    title: string;
}

export interface ExperimentEntry extends NamedEntry {
    devices: string[];
    variants: string[];
    axes: { name: string; values: string[] }[];
    seconds: number | null;
}

export interface DeviceEntry extends NamedEntry {
    capacity_bytes: number;
    timed: boolean;
}

export interface OptionEntry {
    name: string;
    help: string;
    values: string[];
}

export interface Problem {
    line: number | null;
    message: string;
}

export interface SessionEntry {
    id: string;
    name: string;
    title: string;
    phase: string;
    lanes: number;
    begun_unix_ms: number;
}

export interface Lane {
    name: string;
    device: string;
    workload: string;
    scale: string;
    seed: number;
    of: number | null;
    forked: "here" | "start" | null;
    page_bytes: number;
    capacity_bytes: number;
    physical_bytes: number;
    unit_pages: number;
    units: number;
    superblocks: number;
    groups: number;
    owners: { name: string; isolation: "II" | "PI" | null }[];
    placements: string[];
    marks: { background_free_units: number; foreground_free_units: number };
    timed: boolean;
    write_bytes: number | null;
    settings: Settings;
    /** Reason why the lane has stopped. */
    error?: string | null;
    /**
     * Start of the statistics of a served drive, milliseconds since 1970. null for the drive's
     * creation.
     */
    since_unix_ms?: number | null;
    /** Writes to a served drive while no page was connected. */
    unwatched?: Unwatched[];
}

/** Writes to a served drive while no page was connected. Curves show only their sums. */
export interface Unwatched {
    from_host_bytes: number;
    to_host_bytes: number;
    media_bytes: number;
    collections: number;
    until_unix_ms: number;
}

export interface SessionMessage {
    type: "session";
    id: string;
    name?: string;
    title: string;
    lanes: Lane[];
    speed: number | null;
    running: boolean;
}

/** Latency of the jobs of a timed lane, in total and over time. */
export interface LatencyMessage {
    type: "latency";
    lane: number;
    jobs: JobLatency[];
    series?: { seconds: number[]; host_bytes_per_second: number[]; collection_bytes_per_second?: number[]; waited_share?: number[] };
    /** Percentiles over time. null for intervals without completions. */
    latencies?: { seconds: number[]; directions: DirectionLatencies[] } | null;
}

/** Histogram of the erases of blocks, as the number of blocks in each step, from the minimum on. */
export interface Wear {
    min: number;
    avg: number;
    max: number;
    step: number;
    blocks: number[];
}

export interface DirectionLatencies {
    direction: string;
    p50_ns: (number | null)[];
    p99_ns: (number | null)[];
    p999_ns: (number | null)[];
}

export interface JobLatency {
    name: string;
    direction: string;
    iops: number;
    bytes_per_second: number;
    mean_ns: number;
    p50_ns: number;
    p99_ns: number;
    p999_ns: number;
    p9999_ns: number;
    waited_share: number;
}

export interface HostEntry {
    host: string;
    controller: number;
    transport: string;
    namespace: number | null;
    iops: number;
    bytes_per_second: number;
    queue_depth: number;
    latency_ns: { p50: number; p99: number; p999: number } | null;
}

export interface HostsMessage {
    type: "hosts";
    hosts: HostEntry[];
    wear?: Wear | null;
    /** Fault plan with the number of occurrences. null without a plan. */
    faults?: FaultsReport | null;
}

export interface FaultsReport {
    seed: number;
    /** I/O commands since the plan was set. */
    commands: number;
    faults: { name: string; kind: string; active: boolean; struck: number }[];
}

/** A metric of a cell in two stored runs, as in `warp results compare`. */
export interface Difference {
    /** Empty if both runs have a single cell. */
    cell: string;
    metric: string;
    a: number;
    b: number;
    share: number | null;
    interval: [number, number] | null;
    seeds: [number, number];
    verdict: "same" | "more" | "less" | "no_difference" | "one_seed";
}

export interface Comparison {
    a: ComparedRun;
    b: ComparedRun;
    rows: Difference[];
    /** Cells of only one of the runs. */
    only_a: string[];
    only_b: string[];
}

export interface ComparedRun {
    name: string;
    about: string;
    notes: string[];
}

/** Result of a requested snapshot. */
export interface Checkpoint {
    /** True if the drive had changed and a snapshot was written. */
    written: boolean;
    files: { name: string; bytes: number; at_unix_ms: number }[];
}

export interface CellResult {
    waf: number | null;
    tail_waf: number | null;
    host_bytes_written: number;
    media_bytes_written: number;
    /** A sentence for each reason to doubt the write amplification. */
    warnings: string[];
    block_erases?: { min: number; avg: number; max: number };
    [key: string]: unknown;
}

export type ServerMessage =
    | SessionMessage
    | LatencyMessage
    | HostsMessage
    | { type: "wear"; lane: number; wear: Wear }
    | { type: "error"; message: string }
    | { type: "result"; lane: number; result: CellResult };

export type Command =
    | { do: "play" }
    | { do: "pause" }
    | { do: "speed"; host_bytes_per_second: number | null }
    | { do: "step"; requests: number }
    | { do: "seek"; host_bytes: number }
    | { do: "first_collection" }
    | { do: "fork"; lane: number; name: string; set: Settings }
    | { do: "drop"; lane: number };
