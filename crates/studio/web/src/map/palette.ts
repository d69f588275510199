// Colours of owners, the same as in the project's figures and distinguishable with colour
// blindness.
//
// Okabe and Ito's palette for at most six handles, Tol's light palette for more. Colours repeat
// from the ninth handle on, where names distinguish the handles. Grey is reserved for the shared
// pool.
export const OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"] as const;
export const TOL_LIGHT = ["#77AADD", "#EE8866", "#EEDD88", "#44BB99", "#FFAABB", "#99DDFF", "#BBCC33", "#AAAA00"] as const;
export const SHARED = "#9AA0A6";

/** Colours of `used` handles. An owner without isolation is the shared pool. */
export function ownerColours(owners: { name: string; isolation: string | null }[], used: number): string[] {
    const palette: readonly string[] = used > OKABE_ITO.length ? TOL_LIGHT : OKABE_ITO;
    return owners.map((owner, index) => (owner.isolation === null ? SHARED : (palette[index % palette.length] as string)));
}

export interface Ground {
    paper: string;
    free: string;
    ink: string;
}

export const LIGHT: Ground = { paper: "#FFFFFF", free: "#EDF0F2", ink: "#1F2328" };
export const DARK: Ground = { paper: "#0D1117", free: "#20262E", ink: "#E6EDF3" };

export type Rgb = readonly [number, number, number];

export function rgb(hex: string): Rgb {
    const value = Number.parseInt(hex.slice(1), 16);
    return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Mixes `share` of `b` into `a`. */
export function mix(a: Rgb, b: Rgb, share: number): Rgb {
    return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share];
}

export function css([r, g, b]: Rgb): string {
    return `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;
}

/** Share of an owner's colour in the colour of its invalid pages. */
export const DEAD_SHARE = 0.3;
