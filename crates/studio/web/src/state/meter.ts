// What drawing costs, counted: frames that came, pictures that were drawn, and milliseconds of script for them.
//
// `warpMeter` in the page's console and the tool that looks at the page (dev/look.mjs) read it. Two additions a frame are all it takes.

export const meter = {
    frames: 0,
    frameMs: 0,
    pictures: 0,
    pictureMs: 0,
    tiles: 0,
    renderer: "",
    frame(ms: number): void {
        this.frames += 1;
        this.frameMs += ms;
    },
    picture(ms: number, tiles: number): void {
        this.pictures += 1;
        this.pictureMs += ms;
        this.tiles += tiles;
    },
};

(globalThis as { warpMeter?: typeof meter }).warpMeter = meter;
