/**
 * floor(2**places * Z) of a standard normal Z.
 * @param {Draws} draws
 * @param {number} places
 */
export function normal(draws: Draws, places: number): number;
export function shifted(whole: number, [high, low]: number[], places: number): number;
export function signed(magnitude: number, negative: number): number;
export type Draws = import("./draws.js").Draws;
export type Deviates = number[][];
