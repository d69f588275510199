// Scroll positions that show an element in the uncovered part of the window.

/**
 * Pixels to scroll until a box lies between two heights of the window, 0 if it does. A taller box
 * shows its top.
 */
export function wayTo(box: { top: number; bottom: number }, top: number, bottom: number): number {
    const spare = bottom - top - (box.bottom - box.top);
    const isSeen = spare >= 0 ? box.top >= top && box.bottom <= bottom : Math.abs(box.top - top) <= 1;
    return isSeen ? 0 : Math.round(box.top - top - Math.max(0, spare) / 2);
}
