// Tour with a list of stories, and the captions of a story over the page of its run.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Notice } from "../parts/Notice.tsx";
import { Prose } from "../parts/Prose.tsx";
import { go } from "../state/route.ts";
import { api, rememberOrder } from "../state/server.ts";
import type { Session } from "../state/session.ts";
import { RunView } from "./Run.tsx";
import { wayTo } from "../state/reveal.ts";
import { STORIES, type Story } from "./stories.ts";

export function TourView({ story }: { story: string | null }) {
    const chosen = STORIES.find((one) => one.name === story);
    if (chosen !== undefined) return <Told story={chosen} key={chosen.name} />;
    return (
        <main id="content" tabIndex={-1} class="tour">
            <h1>Tour</h1>
            <p class="lead">Five stories show a run of one minute each, with captions. The runs are real, and all controls work. Stop at any time.</p>
            <ol class="stories">
                {STORIES.map((one, index) => (
                    <li key={one.name}>
                        <a href={`#/tour/${one.name}`}>
                            <span class="ordinal">{index + 1}</span>
                            <Motif rows={one.motif} />
                            <span>
                                <b>{one.title}</b>
                                <em>{one.question}</em>
                            </span>
                        </a>
                    </li>
                ))}
            </ol>
        </main>
    );
}

const MOTIF: Record<string, string> = { B: "#0072B2", O: "#D55E00", G: "#009E73", S: "#9AA0A6" };

function Motif({ rows }: { rows: string[] }) {
    const tiles = rows.flatMap((row, y) => [...row].map((letter, x) => ({ letter, x: x * 13, y: y * 13 })));
    return (
        <svg class="motif" width="76" height="37" viewBox="0 0 76 37" aria-hidden="true">
            {tiles.map(({ letter, x, y }) => (
                <rect key={`${x} ${y}`} x={x} y={y} width="11" height="11" class={letter === "." ? "none" : ""} fill={MOTIF[letter.toUpperCase()]} opacity={letter === letter.toUpperCase() ? 1 : 0.3} />
            ))}
        </svg>
    );
}

function Told({ story }: { story: Story }) {
    const id = useSignal<string | null>(null);
    const problem = useSignal<string | null>(null);
    useEffect(() => {
        let isOver = false;
        let begun: string | null = null;
        api.begin(story.order).then(
            (made) => {
                begun = made;
                if (isOver) void api.end(made).catch(() => {});
                else {
                    rememberOrder(made, story.order);
                    id.value = made;
                }
            },
            (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
        );
        // A story ends its session when the reader leaves, because the server has at most 16
        // sessions.
        const leave = () => {
            isOver = true;
            if (begun !== null) void api.end(begun).catch(() => {});
        };
        addEventListener("pagehide", leave);
        return () => {
            removeEventListener("pagehide", leave);
            leave();
        };
    }, [story]);
    if (problem.value !== null) {
        return (
            <main id="content" tabIndex={-1} class="narrow">
                <h1>{story.title}</h1>
                <Notice kind="error">{problem.value}</Notice>
                <p>
                    <a href="#/tour">All stories</a>
                </p>
            </main>
        );
    }
    if (id.value === null) {
        return (
            <main id="content" tabIndex={-1} class="narrow" aria-busy="true">
                <h1>{story.title}</h1>
                <p class="lead">Preparing the drives …</p>
            </main>
        );
    }
    return <RunView id={id.value}>{(session) => <Captions session={session} story={story} />}</RunView>;
}

/** Minimum time between two scrolls to a caption's subject, the duration of a smooth scroll. */
const REVEAL_EVERY_MS = 700;
/** Margin of the frame around the subject. */
const FRAME_PIXELS = 10;

/** Current caption, and a frame around its subject. */
function Captions({ session, story }: { session: Session; story: Story }) {
    session.told.value;
    const isStarted = useRef(false);
    const lane = session.lanes.value[0];
    const capacity = lane?.lane.capacity_bytes ?? 1;
    const now = session.hostBytes / capacity;
    const isOver = session.lanes.value.length > 0 && session.lanes.value.every((state) => state.phase === "ended");
    const reached = story.captions.filter((one) => one.from <= now).length;
    const index = Math.max(0, reached - 1);
    const caption = story.captions[index];
    const number = STORIES.indexOf(story);
    const next = STORIES[number + 1];

    useEffect(() => {
        if (isStarted.current || lane === undefined || session.connection.value !== "live") return;
        isStarted.current = true;
        session.setSpeed(story.speed * capacity);
        session.play();
    }, [lane, session.connection.value]);

    useLayoutEffect(() => {
        const found = isOver || caption === undefined ? [] : [...document.querySelectorAll<HTMLElement>(`[data-tour="${caption.at}"]`)];
        for (const element of found) element.classList.add("pointed-at");
        return () => {
            for (const element of found) element.classList.remove("pointed-at");
        };
    }, [caption?.at, isOver, session.lanes.value.length]);

    // Scrolls the subject above the caption when the caption appears and when the layout changes,
    // until the reader scrolls.
    const place = useRef<HTMLElement>(null);
    useEffect(() => {
        if (caption === undefined || isOver) return;
        let hasScrolled = false;
        const reveal = () => {
            const parts = [...document.querySelectorAll(`[data-tour="${caption.at}"]`)];
            const shown = parts[caption.lane ?? 0] ?? parts[0];
            if (shown === undefined || place.current === null || hasScrolled) return;
            const head = document.querySelector("header.top")?.getBoundingClientRect().bottom ?? 0;
            const by = wayTo(shown.getBoundingClientRect(), head + FRAME_PIXELS, place.current.getBoundingClientRect().top - FRAME_PIXELS);
            if (by !== 0) scrollBy({ top: by, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
        };
        const scrolls = () => (hasScrolled = true);
        const kinds = ["wheel", "touchmove"] as const;
        for (const kind of kinds) addEventListener(kind, scrolls, { passive: true });
        reveal();
        const timer = setInterval(reveal, REVEAL_EVERY_MS);
        return () => {
            clearInterval(timer);
            for (const kind of kinds) removeEventListener(kind, scrolls);
        };
    }, [caption, isOver]);

    const jump = (to: number) => {
        const target = story.captions[to];
        if (target !== undefined) session.seek(target.from * capacity + 1);
    };
    return (
        <aside class="caption" ref={place} aria-label={`Story: ${story.title}`}>
            <p class="caption-title">
                <b>
                    {number + 1}. {story.title}
                </b>
                <span>
                    {isOver ? story.captions.length : index + 1} of {story.captions.length}
                </span>
            </p>
            <p class="caption-text" aria-live="polite">
                <Prose>{isOver ? story.end : (caption?.text ?? "")}</Prose>
            </p>
            <div class="caption-bar">
                <button type="button" onClick={() => jump(index - 1)} disabled={index === 0}>
                    Back
                </button>
                {isOver ? (
                    next === undefined ? (
                        <button type="button" class="primary" onClick={() => go("#/")}>
                            Start your own run
                        </button>
                    ) : (
                        <button type="button" class="primary" onClick={() => go(`#/tour/${next.name}`)}>
                            Next story
                        </button>
                    )
                ) : (
                    <button type="button" onClick={() => jump(index + 1)} disabled={index + 1 >= story.captions.length}>
                        Next
                    </button>
                )}
                <a href="#/tour">All stories</a>
            </div>
        </aside>
    );
}
