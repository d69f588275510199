// Counters for the cost of drawing, in received frames, drawn pictures and milliseconds of script.
//
// `warpMeter` in the browser's console and dev/look.mjs read it. It costs two additions per frame.

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
