/** The most organic results that a search can ask for. */
export const depthMax = 100;

/** The organic results of one page of Google. */
export const organicPerPage = 10;

/** The pages that a search of this depth needs, from 1. @param perPage the organic results of one page, if not of Google's. */
export const pagesOf = (depth: number, perPage: number = organicPerPage): number => Math.ceil(depth / perPage);
