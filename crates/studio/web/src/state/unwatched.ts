// Notes about writes to a served drive while no page was connected.
import type { Unwatched } from "../wire/messages.ts";
import { capacities, counted, moment, waf } from "./numbers.ts";

export function unwatchedSentence(one: Unwatched, capacityBytes: number, nowMs: number): string {
    const written = one.to_host_bytes - one.from_host_bytes;
    const at = moment(one.until_unix_ms, nowMs);
    const begins = one.from_host_bytes === 0 ? `The drive was not monitored before ${at}, so the curves begin there. Earlier,` : `The drive was not monitored until ${at}, so the curves continue there. In the gap,`;
    return `${begins} hosts wrote ${capacities(written / capacityBytes)} drive writes, with a WAF of ${waf(one.media_bytes / written)} and ${counted(one.collections, "collection")}. The flat line shows this average.`;
}
