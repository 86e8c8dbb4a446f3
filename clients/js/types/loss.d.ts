/**
 * Confirms the loss that a definition states: that its program gives away no more than its definition states: by a report, and, where it repeats what it drew once,
 * by all reports of an answer and of all answers.
 * @param {any} definition
 * @throws {Unconfirmed} where that cannot be confirmed
 */
export function confirmLoss(definition: any): void;
/**
 * The same, worked out once for a definition.
 * @param {any} definition
 * @throws {Unconfirmed}
 */
export function confirmOnce(definition: any): void;
export { Unconfirmed };
export type Open = Record<"a" | "b" | "half" | "k" | "m" | "n" | "p" | "period" | "size" | "t" | "w", bigint> & {
    digits: bigint[];
};
import { Unconfirmed } from "./intervals.js";
