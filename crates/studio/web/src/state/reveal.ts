// Where a page is scrolled to, so that something is seen in the part of the window that nothing covers.

/** Pixels to scroll by until a box is seen between two heights of the window; 0 if it is. Of one that is higher its upper part is. */
export function wayTo(box: { top: number; bottom: number }, top: number, bottom: number): number {
    const spare = bottom - top - (box.bottom - box.top);
    const isSeen = spare >= 0 ? box.top >= top && box.bottom <= bottom : Math.abs(box.top - top) <= 1;
    return isSeen ? 0 : Math.round(box.top - top - Math.max(0, spare) / 2);
}
