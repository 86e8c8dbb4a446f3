/** What `check` found: each member is proved, or named in `unchecked` or `notGiven`. */
export interface Found {
  statement: any;
  client: any;
  names: string[];
  mine: { cost: number; total: number } | null;
  reportsPublished: boolean;
  kept: string | null;
  unchecked: string[];
  notGiven: string[];
  witnesses: [string, number][];
  statements: number;
  ofThisSurvey: number;
}

/** The probabilities of a program as fractions of `one`. */
export interface Law {
  kind: "bits" | "answer" | "yes";
  count: number;
  p: bigint;
  q: bigint;
  one: bigint;
}

export class Refused extends Error {}

export function amount(units: number, measure: string): string;
export function hexOf(data: Uint8Array): string;
export function lawOf(client: any): Law | null;
export function plain(text: string, most?: number): string;
export function quoted(text: string): string;
export function sha256(data: Uint8Array): Uint8Array;
export function check(
  files: { get(path: string, most: number): Uint8Array | undefined },
  keys: string[],
  receipts?: (Uint8Array | object)[],
  proof?: Uint8Array | null,
  seen?: Uint8Array | null,
): Promise<Found>;
