import { describe, expect, it } from "vitest";
import { wayTo } from "../src/state/reveal.ts";

const box = (top: number, height: number) => ({ top, bottom: top + height });

describe("what a caption is about", () => {
    it("stays where it is if all of it is seen", () => {
        expect([wayTo(box(60, 480), 60, 540), wayTo(box(100, 200), 60, 540)]).toEqual([0, 0]);
    });
    it("comes to the middle of what is free, from below and from above", () => {
        expect([wayTo(box(615, 80), 60, 540), wayTo(box(-117, 80), 60, 540)]).toEqual([615 - 260, -117 - 260]);
    });
    it("begins at the top where it is higher than that, and stays there", () => {
        expect([wayTo(box(300, 600), 60, 540), wayTo(box(60, 600), 60, 540)]).toEqual([240, 0]);
    });
});
