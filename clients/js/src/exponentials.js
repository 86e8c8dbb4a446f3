// e^x and the normal distribution to as many binary places as are asked for, as whole multiples of 2^-PLACES.

/** Places of what ratios are compared with. */
export const PLACES = 512n;
export const ONE = 1n << PLACES;
/** Places of a normal tail, which may be very small; what is worked out is off by less than 2^-GUARDED. */
const FINE = 2200n;
const GUARDED = 2000n;
const LARGEST_EPSILON = 300n;

/**
 * A decimal >= 0 as a fraction.
 * @param {string} text
 * @returns {[bigint, bigint]}
 */
export function fractionOf(text) {
  const parts = typeof text === "string" && /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$/.exec(text);
  if (!parts) throw new TypeError(`not a decimal >= 0: ${text}. Write it as text, such as "0.5".`);
  const [, whole, fraction = "", power = "0"] = parts;
  const places = Number(power) - fraction.length;
  const digits = BigInt(whole + fraction);
  return places >= 0 ? [digits * 10n ** BigInt(places), 1n] : [digits, 10n ** BigInt(-places)];
}

/**
 * e^(a/b) in multiples of 2^-places, rounded down; a/b >= 0. It is off by less than 2^(150-places) of itself.
 * @param {[bigint, bigint]} fraction
 * @param {bigint} places
 */
function exponential([a, b], places) {
  const halvings = 64n;
  const one = 1n << places;
  const x = (a << places) / (b << halvings);
  let sum = one;
  for (let term = (one * x) >> places, n = 1n; term; n++, term = (term * x) / (one * n)) sum += term;
  for (let i = 0n; i < halvings; i++) sum = (sum * sum) >> places;
  return sum;
}

/**
 * e^ε, rounded down to a multiple of 2^-PLACES; of a very large ε less than it is.
 * @param {string} epsilon
 */
export function oddsBelow(epsilon) {
  const [a, b] = fractionOf(epsilon);
  return exponential(a > LARGEST_EPSILON * b ? [LARGEST_EPSILON, 1n] : [a, b], PLACES);
}

/**
 * The chance that a normal deviate is below a/b, in multiples of 2^-FINE: of x > 0 it is 1/2 + φ(x)·Σ x^(2n+1)/(2n+1)!!.
 * @param {bigint} a
 * @param {bigint} b > 0
 */
function normalBelow(a, b) {
  const one = 1n << FINE;
  const x = ((a < 0n ? -a : a) << FINE) / b;
  const square = (x * x) >> FINE;
  let sum = 0n;
  for (let term = x, n = 3n; term; term = (term * square) / (one * n), n += 2n) sum += term;
  const density = (one * one) / ((exponential([square, 2n * one], FINE) * rootOfTwoPi(one)) >> FINE);
  const half = one / 2n;
  const upper = (sum * density) >> FINE;
  return a < 0n ? half - upper : half + upper;
}

/** √(2π), by Machin's formula for π. @param {bigint} one */
function rootOfTwoPi(one) {
  /** @type {(n: bigint) => bigint} */
  const arctangent = (n) => {
    let sum = 0n;
    for (let power = one / n, k = 1n, sign = 1n; power; power /= n * n, k += 2n, sign = -sign) sum += (sign * power) / k;
    return sum;
  };
  const pi = 4n * (4n * arctangent(5n) - arctangent(239n));
  return rootOf(2n * pi * one);
}

/** The whole part of a square root, by Newton's method. @param {bigint} square */
function rootOf(square) {
  let root = 1n << BigInt((square.toString(2).length + 1) >> 1);
  for (let next = (root + square / root) >> 1n; next < root; next = (root + square / root) >> 1n) root = next;
  return root;
}

/**
 * Whether a normal deviate that is moved by `shift` of its standard deviations keeps ε and δ:
 * Φ(s/2 - ε/s) - e^ε·Φ(-s/2 - ε/s) <= δ (Balle, Wang 2018, Theorem 8).
 * @param {[bigint, bigint]} shift
 * @param {string} epsilon
 * @param {string} delta
 */
export function normalKeeps([s, t], epsilon, delta) {
  if (s === 0n) return true;
  const [a, b] = fractionOf(epsilon);
  const [c, d] = fractionOf(delta);
  // Below these bounds the places above are enough: no term exceeds 2^150, no chance of interest is below 2^-1900.
  if (a > 50n * b || s > 50n * t || a * t > 50n * b * s || c << 1900n < d) return false;
  const below = 2n * s * t * b;
  const upper = normalBelow(s * s * b - 2n * a * t * t, below);
  const lower = normalBelow(-s * s * b - 2n * a * t * t, below);
  const found = upper - ((exponential([a, b], FINE) * lower) >> FINE) + (1n << (FINE - GUARDED));
  return found * d <= c << FINE;
}
