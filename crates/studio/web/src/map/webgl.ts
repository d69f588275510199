// Tiles by WebGL2, with one draw call for a batch and one point for each tile. The fragment shader
// computes the look. A point is one vertex. Instances of a quad take a software renderer a
// hundred times as long.
//
// The canvas is not cleared between batches (`preserveDrawingBuffer`), so only tiles that changed
// are uploaded and drawn.
import { DEAD_SHARE, rgb } from "./palette.ts";
import { BATCH, type Batch, type Colours, type TileRenderer } from "./renderer.ts";

const MOST_OWNERS = 160;

const VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 place;
layout(location = 1) in uvec4 tileLook;
uniform vec2 canvas;
uniform float tile;
flat out uvec4 v_look;
void main() {
    v_look = tileLook;
    vec2 at = (place + tile * 0.5) / canvas * 2.0 - 1.0;
    gl_Position = vec4(at.x, -at.y, 0.0, 1.0);
    gl_PointSize = tile;
}`;

// The same pictures as canvas2d.ts: from below, valid pages in the owner's colour, invalid pages in
// a tint, and unwritten pages in the colour of free units. Units open for the host have a frame,
// units open for collection corners.
const FRAGMENT = `#version 300 es
precision highp float;
flat in uvec4 v_look;
uniform float tile;
uniform vec3 paper;
uniform vec3 freeColour;
uniform vec3 ink;
uniform float deadShare;
uniform sampler2D owners;
out vec4 colour;
void main() {
    uint state = v_look.y;
    if (state == 7u) { colour = vec4(paper, 1.0); return; }
    if (state == 0u || v_look.x == 255u) { colour = vec4(freeColour, 1.0); return; }
    vec3 owner = texelFetch(owners, ivec2(int(v_look.x), 0), 0).rgb;
    vec3 dead = mix(paper, owner, deadShare);
    float valid = float(v_look.z) / 255.0;
    float written = float(v_look.w) / 255.0;
    if (tile < 6.0) {
        vec3 blend = mix(dead, owner, valid);
        colour = vec4(state == 3u ? blend : mix(blend, ink, 0.45), 1.0);
        return;
    }
    vec2 v_at = gl_PointCoord * tile;
    float row = tile - v_at.y;
    float validRows = floor(valid * tile + 0.5);
    float writtenRows = max(validRows, floor(written * tile + 0.5));
    vec3 fill = row < validRows ? owner : row < writtenRows ? dead : freeColour;
    if (state != 3u) {
        float border = tile >= 12.0 ? 2.0 : 1.0;
        vec2 edge = min(v_at, tile - v_at);
        bool framed = min(edge.x, edge.y) < border;
        float arm = max(2.0, floor(tile / 3.0 + 0.5));
        if (framed && (state == 1u || max(edge.x, edge.y) < arm)) fill = ink;
    }
    colour = vec4(fill, 1.0);
}`;

function shader(gl: WebGL2RenderingContext, kind: number, source: string): WebGLShader {
    const made = gl.createShader(kind);
    if (made === null) throw new Error("no shader");
    gl.shaderSource(made, source);
    gl.compileShader(made);
    if (gl.getShaderParameter(made, gl.COMPILE_STATUS) !== true) throw new Error(gl.getShaderInfoLog(made) ?? "a shader does not compile");
    return made;
}

export class WebglRenderer implements TileRenderer {
    readonly kind = "webgl2";
    private readonly canvas: HTMLCanvasElement;
    private readonly gl: WebGL2RenderingContext;
    private readonly program: WebGLProgram;
    private readonly buffer: WebGLBuffer;
    private readonly at: Record<string, WebGLUniformLocation | null> = {};

    /** Throws without WebGL2. The caller then uses the other renderer. */
    constructor(canvas: HTMLCanvasElement) {
        const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false, preserveDrawingBuffer: true });
        if (gl === null) throw new Error("no WebGL2");
        this.canvas = canvas;
        this.gl = gl;
        const program = gl.createProgram();
        gl.attachShader(program, shader(gl, gl.VERTEX_SHADER, VERTEX));
        gl.attachShader(program, shader(gl, gl.FRAGMENT_SHADER, FRAGMENT));
        gl.linkProgram(program);
        if (gl.getProgramParameter(program, gl.LINK_STATUS) !== true) throw new Error(gl.getProgramInfoLog(program) ?? "shaders do not link");
        this.program = program;
        for (const name of ["canvas", "tile", "paper", "freeColour", "ink", "deadShare", "owners"]) this.at[name] = gl.getUniformLocation(program, name);
        const buffer = gl.createBuffer();
        this.buffer = buffer;
        gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
        gl.bufferData(gl.ARRAY_BUFFER, BATCH * 8, gl.DYNAMIC_DRAW);
        gl.enableVertexAttribArray(0);
        gl.vertexAttribPointer(0, 2, gl.UNSIGNED_SHORT, false, 8, 0);
        gl.enableVertexAttribArray(1);
        gl.vertexAttribIPointer(1, 4, gl.UNSIGNED_BYTE, 8, 4);
    }

    begin(width: number, height: number, tile: number, colours: Colours): void {
        const { gl, at } = this;
        this.canvas.width = width;
        this.canvas.height = height;
        gl.viewport(0, 0, width, height);
        const part = (hex: string): [number, number, number] => {
            const [r, g, b] = rgb(hex);
            return [r / 255, g / 255, b / 255];
        };
        const paper = part(colours.ground.paper);
        gl.clearColor(...paper, 1);
        gl.clear(gl.COLOR_BUFFER_BIT);
        gl.useProgram(this.program);
        gl.uniform2f(at["canvas"] ?? null, width, height);
        gl.uniform1f(at["tile"] ?? null, tile);
        gl.uniform3f(at["paper"] ?? null, ...paper);
        gl.uniform3f(at["freeColour"] ?? null, ...part(colours.ground.free));
        gl.uniform3f(at["ink"] ?? null, ...part(colours.ground.ink));
        gl.uniform1f(at["deadShare"] ?? null, DEAD_SHARE);
        gl.uniform1i(at["owners"] ?? null, 0);
        const texels = new Uint8Array(MOST_OWNERS * 4).fill(255);
        colours.owners.slice(0, MOST_OWNERS).forEach((owner, i) => texels.set(owner.map(Math.round), i * 4));
        const texture = gl.createTexture();
        gl.bindTexture(gl.TEXTURE_2D, texture);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, MOST_OWNERS, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
        gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
        gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    }

    draw(batch: Batch): void {
        const { gl } = this;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
        gl.bufferSubData(gl.ARRAY_BUFFER, 0, batch.looks, 0, batch.count * 8);
        gl.drawArrays(gl.POINTS, 0, batch.count);
    }

    show(): void {
        // The browser presents the drawing buffer by itself.
    }

    end(): void {
        this.gl.getExtension("WEBGL_lose_context")?.loseContext();
    }
}

let isFastKnown: boolean | null = null;

/** True if the browser has WebGL2 in hardware. Tested once, on a temporary canvas. */
export function isWebglFast(): boolean {
    if (isFastKnown === null) {
        const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
        const named = gl?.getExtension("WEBGL_debug_renderer_info");
        const name = gl === null || !named ? "" : String(gl.getParameter(named.UNMASKED_RENDERER_WEBGL));
        isFastKnown = gl !== null && !/swiftshader|llvmpipe|software|basic render/i.test(name);
        gl?.getExtension("WEBGL_lose_context")?.loseContext();
    }
    return isFastKnown;
}
