// Check a total of privacy loss:   node check_total.mjs total.json
//
// A second implementation of docs/reference/certificate-format.md, written from that page. It needs Node.js, or any
// other engine with BigInt, and no package. Numbers of the proof are whole numbers and fractions; none is a double.

import { readFileSync, statSync } from "node:fs"
import { pathToFileURL } from "node:url"

const W = 256n
const ONE = 1n << W
const TWO_PI = 628318530717958647692528676655900576839433879875021164194988918461563281257241799n // 10^80 times
const MOST_BYTES = 2 ** 20
const MOST_CELLS = 2 ** 15
const MOST_WORK = 2 ** 19
const MOST_BITS = 2n ** 15n
const KEYS = "bits,charges,delta,epsilon,format,grid,tail,version"
const KINDS = {
  pure: ["bound"],
  "symmetric-pair": ["bound", "tau"],
  approximate: ["bound", "slack"],
  laplace: ["bound"],
  gaussian: ["mu"],
  "finite-pair": ["outcomes"],
}

function need(condition, reason) {
  if (!condition) throw new Error(reason)
}

// -- whole numbers and fractions: [numerator, denominator > 0] --------------------------------------------------------

const least = (a, b) => (a < b ? a : b)
const most = (a, b) => (a > b ? a : b)

function floorDivide(a, b) {
  const quotient = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient
}

const ceilDivide = (a, b) => -floorDivide(-a, b)

function greatestDivisor(a, b) {
  while (b) [a, b] = [b, a % b]
  return a < 0n ? -a : a
}

function fraction(numerator, denominator = 1n) {
  const divisor = greatestDivisor(numerator, denominator) || 1n
  return [numerator / divisor, denominator / divisor]
}

const plus = (a, b) => fraction(a[0] * b[1] + b[0] * a[1], a[1] * b[1])
const minus = (a, b) => fraction(a[0] * b[1] - b[0] * a[1], a[1] * b[1])
const times = (a, b) => fraction(a[0] * b[0], a[1] * b[1])
const compare = (a, b) => (a[0] * b[1] < b[0] * a[1] ? -1 : a[0] * b[1] > b[0] * a[1] ? 1 : 0)
const over = (a, b) => (b[0] < 0n ? fraction(-a[0] * b[1], -a[1] * b[0]) : fraction(a[0] * b[1], a[1] * b[0]))
const floor = (a) => floorDivide(a[0], a[1])
const ceil = (a) => ceilDivide(a[0], a[1])
const bitLength = (x) => (x === 0n ? 0 : x.toString(16).length * 4 - Math.clz32(parseInt(x.toString(16)[0], 16)) + 28)

function squareRoot(x) {
  if (x < 2n) return x
  let root = 1n << BigInt((bitLength(x) >> 1) + 1)
  for (;;) {
    const next = (root + x / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

const ROOT = [
  squareRoot((TWO_PI << (2n * W)) / 10n ** 80n),
  squareRoot(((TWO_PI + 1n) << (2n * W)) / 10n ** 80n) + 1n,
]

/** The exact value of a text such as 0.05 or 3/7, from `low` to `high`. */
function number(text, high, low = [0n, 1n]) {
  need(typeof text === "string" && text.length <= 9000, "not a number")
  const found = /^(0|[1-9][0-9]*)(?:\.([0-9]+)|\/([1-9][0-9]*))?$/.exec(text)
  need(found && !text.includes("\n"), "not a number")
  const [, whole, decimals = "", below] = found
  need([whole, decimals, below ?? ""].every((part) => part.length <= 4300), "a number that is too long")
  const value = below ? fraction(BigInt(whole), BigInt(below)) : fraction(BigInt(whole + decimals), 10n ** BigInt(decimals.length))
  need(compare(low, value) <= 0 && compare(value, high) <= 0, `a number out of range: ${text.slice(0, 40)}`)
  return value
}

/** The sums of both columns of pairs of numbers, whose common denominator must not be too long. */
function common(rows) {
  let below = 1n
  for (const [, divisor] of rows.flat()) {
    if (below % divisor === 0n) continue
    below *= divisor / greatestDivisor(below, divisor)
    need(below >> MOST_BITS === 0n, "masses with too long a common denominator")
  }
  const sum = (side) => rows.reduce((total, row) => total + row[side][0] * (below / row[side][1]), 0n)
  return [fraction(sum(0), below), fraction(sum(1), below)]
}

function whole(value, low, high) {
  need(Number.isInteger(value) && low <= value && value <= high, `not a whole number from ${low} to ${high}`)
  return value
}

// -- certified functions ----------------------------------------------------------------------------------------------

/** Two whole numbers around 2^W e^x. */
function exp(x) {
  if (x[0] < 0n) {
    const far = compare(x, [-2000n, 1n]) < 0
    const [low, high] = exp(far ? [2000n, 1n] : [-x[0], x[1]])
    return [far ? 0n : (ONE * ONE) / high, (ONE * ONE) / low + 1n]
  }
  const halvings = bitLength(x[0] / x[1]) + 8
  const y = (x[0] << W) / (x[1] << BigInt(halvings))
  let term = ONE
  let total = ONE
  for (let k = 1n; k < 40n; k++) {
    term = ((term * y) >> W) / k
    total += term
  }
  let [low, high] = [total, total + 100n]
  for (let i = 0; i < halvings; i++) [low, high] = [(low * low) >> W, ((high * high) >> W) + 1n]
  return [low, high]
}

/** The normal distribution function at z units, rounded up or down. */
function normal(z, up) {
  const more = z > 0n === up ? 1n : 0n
  const size = z < 0n ? -z : z
  const square = ((z * z) >> W) + more
  let [term, total, k] = [size, size, 1n]
  while (term > more) {
    k += 2n
    term = (((term * square) >> W) + more) / k + more
    total += term
  }
  const end = 1 - Number(more)
  const scale = exp(fraction(z * z, 2n << (2n * W)))[end] * ROOT[end]
  const part = ((total + 2n * more) * ONE * ONE) / scale + more
  return ONE / 2n + (z > 0n ? part : -part)
}

/** Delta of a Gaussian pair at y, in units, rounded up. */
function gaussian(mu, y) {
  const [half, share] = [over(mu, [2n, 1n]), over(y, mu)]
  const [a, b] = [minus(half, share), minus([-half[0], half[1]], share)]
  const square = over(times(a, a), [-2n, 1n])
  if (compare(a, [-15n, 1n]) < 0) return exp(square)[1]
  const upper = compare(a, [15n, 1n]) > 0 ? ONE : normal(ceil(times(a, [ONE, 1n])), true)
  let lower
  if (compare(b, [-15n, 1n]) > 0) {
    const at = compare(b, [15n, 1n]) > 0 ? 15n * ONE : floor(times(b, [ONE, 1n]))
    lower = (exp(y)[0] * most(0n, normal(at, false))) >> W
  } else {
    const [x, x2] = [[-b[0], b[1]], times(b, b)]
    const above = times(x, plus(x2, [5n, 1n]))
    const below = plus(times(x2, plus(x2, [6n, 1n])), [3n, 1n])
    lower = floor(times([(exp(square)[0] * ONE) / ROOT[1], 1n], over(above, below)))
  }
  return least(ONE, most(0n, upper - lower))
}

// -- reports on a grid ------------------------------------------------------------------------------------------------

class Grid {
  constructor(claim) {
    this.h = number(claim.grid, [100n, 1n], [1n, 10n ** 9n])
    this.bits = BigInt(whole(claim.bits, 64, 192))
    this.tail = floor(times(number(claim.tail, [1n, 1n]), [1n << this.bits, 1n]))
    this.work = 0
    // How many outcomes and cells there are: known before anything is computed.
    const pairs = claim.charges.filter((charge) => charge.kind === "finite-pair").map((charge) => charge.outcomes)
    need(pairs.every((rows) => Array.isArray(rows)), "not a list of outcomes")
    const bounds = claim.charges.filter((charge) => charge.kind === "laplace").map((charge) => number(charge.bound, [100n, 1n]))
    const outcomes = BigInt(pairs.reduce((total, rows) => total + rows.length, 0))
    const cells = plus([outcomes, 1n], over(times([2n, 1n], bounds.reduce(plus, [0n, 1n])), this.h))
    need(compare(cells, [BigInt(MOST_CELLS), 1n]) <= 0, "a grid with too many cells")
    this.width = ONE - exp([-this.h[0], this.h[1]])[1]
  }

  at(k) {
    return times([BigInt(k), 1n], this.h)
  }

  /** The distribution of one report, and its largest finite loss. */
  report(charge) {
    const given = (name, usual) => (Object.hasOwn(charge, name) ? charge[name] : usual)
    const bound = number(given("bound", "0"), [100n, 1n])
    const tau = number(given("tau", "1"), [1n, 1n])
    let slack = number(given("slack", "0"), [1n, 1n])
    let cells
    if (charge.kind === "finite-pair") {
      const rows = charge.outcomes.map((row) => {
        need(Array.isArray(row) && row.length === 2, "an outcome that is not a pair")
        return row.map((mass) => number(mass, [1n, 1n]))
      })
      need(common(rows).every((sum) => compare(sum, [1n, 1n]) === 0), "masses that do not sum to 1")
      const scaled = (mass) => times(mass, [ONE, 1n])
      cells = rows.filter(([p, q]) => p[0] && q[0]).map(([p, q]) => [ceil(scaled(p)), floor(scaled(q))])
      slack = minus([1n, 1n], common(rows.filter(([, q]) => q[0]))[0])
    } else if (charge.kind === "laplace") {
      cells = this.laplace(bound)
    } else {
      const [low, high] = exp([-bound[0], bound[1]])
      const stays = times(minus([1n, 1n], slack), [ONE, 1n])
      const [up, down] = [low, high].map((x) => over(times(tau, stays), [ONE + x, 1n]))
      const same = times(minus([1n, 1n], tau), stays)
      cells = [
        [ceil(times(up, [ONE, 1n])), floor(times(up, [low, 1n]))],
        [ceil(times(down, [high, 1n])), floor(times(down, [ONE, 1n]))],
        [ceil(same), floor(same)],
      ]
    }
    const law = new Map()
    for (const [p, q] of cells) {
      if (p === 0n) continue
      const [k, upper] = this.split(p, q)
      law.set(k, (law.get(k) ?? 0n) + p - upper)
      law.set(k + 1, (law.get(k + 1) ?? 0n) + upper)
    }
    need(law.size > 0, "no finite loss")
    const places = [...law.keys()]
    const [first, last] = [Math.min(...places), Math.max(...places)]
    const unit = 1n << (W - this.bits)
    const row = Array.from({ length: last - first + 1 }, (_, i) => ceilDivide(law.get(first + i) ?? 0n, unit))
    const infinite = ceil(times(slack, [1n << this.bits, 1n]))
    return { law: { first, row, infinite }, reach: bound[0] ? bound : this.at(last) }
  }

  *laplace(bound) {
    const [low, high] = exp([-bound[0], bound[1]])
    yield [ONE >> 1n, low >> 1n]
    yield [(high + 1n) >> 1n, ONE >> 1n]
    const below = [-bound[0], bound[1]]
    for (let k = floor(over(below, this.h)); k < ceil(over(bound, this.h)); k++) {
      const start = compare(this.at(k), below) > 0 ? this.at(k) : below
      const end = compare(this.at(k + 1n), bound) < 0 ? this.at(k + 1n) : bound
      const half = (x) => over(x, [2n, 1n])
      const p = exp(half(minus(end, bound)))[1] - exp(half(minus(start, bound)))[0]
      const [near, far] = [start, end].map((x) => half(plus(x, bound)))
      const q = exp([-near[0], near[1]])[0] - exp([-far[0], far[1]])[1]
      yield [(p + 1n) >> 1n, q >> 1n]
    }
  }

  /** The k of the masses p and q in units, and the part of p at the point k + 1. */
  split(p, q) {
    const end = MOST_CELLS / 2
    let [low, k] = [-end - 1, end]
    while (k - low > 1) {
      const middle = Math.floor((low + k) / 2)
      const point = this.at(middle + 1)
      const enough = p * ONE <= q * exp(compare(point, [2000n, 1n]) > 0 ? [2000n, 1n] : point)[0]
      ;[low, k] = enough ? [low, middle] : [middle, k]
    }
    need(k < end, "a grid with too many cells")
    const upper = floorDivide(p * ONE - q * exp(this.at(k))[0], this.width) + 1n
    return [k, least(p, most(0n, upper))]
  }

  /** The sum of two independent losses. */
  add(a, b) {
    const size = a.row.length + b.row.length - 1
    this.work += size
    need(size <= 2 * MOST_CELLS && this.work <= MOST_WORK, "a grid that needs too much work")
    const largest = (law) => bitLength(law.row.reduce(most))
    const sum = (law) => law.row.reduce((total, mass) => total + mass, 0n)
    const slot = Math.ceil((largest(a) + largest(b) + bitLength(BigInt(size)) + 4) / 4)
    const long = (law) => BigInt("0x" + law.row.toReversed().map((mass) => mass.toString(16).padStart(slot, "0")).join(""))
    const text = (long(a) * long(b)).toString(16).padStart(slot * size, "0")
    const unit = 1n << this.bits
    const row = Array.from({ length: size }, (_, i) =>
      ceilDivide(BigInt("0x" + text.slice(text.length - slot * (i + 1), text.length - slot * i)), unit),
    )
    let infinite = ceilDivide(a.infinite * (sum(b) + b.infinite) + sum(a) * b.infinite, unit)
    need(infinite + sum({ row }) <= 2n * unit, "too few bits")
    let [first, end, below] = [0, size, 0n]
    const above = infinite + this.tail
    while (end > 1 && infinite + row[end - 1] <= above) infinite += row[--end]
    while (first < end - 1 && below + row[first] <= this.tail) below += row[first++]
    const kept = row.slice(first, end)
    kept[0] += below
    return { first: a.first + b.first + first, row: kept, infinite }
  }
}

/** An upper bound of the delta of the listed reports at the claimed epsilon. */
function deltaOf(claim) {
  const grid = new Grid(claim)
  const epsilon = number(claim.epsilon, [10n ** 6n, 1n])
  let [squares, reach, slack] = [[0n, 1n], [0n, 1n], [0n, 1n]]
  const reports = []
  for (const charge of claim.charges) {
    const count = [BigInt(charge.count), 1n]
    if (charge.kind === "gaussian") {
      const mu = number(charge.mu, [100n, 1n])
      squares = plus(squares, times(count, times(mu, mu)))
    } else {
      const { law, reach: each } = grid.report(charge)
      reach = plus(reach, times(count, each))
      slack = plus(slack, times(count, fraction(law.infinite, 1n << grid.bits)))
      reports.push([charge.count, law])
    }
  }
  if (!squares[0] && compare(reach, epsilon) <= 0) return slack
  let total = { first: 0, row: [1n << grid.bits], infinite: 0n }
  for (let [count, law] of reports) {
    while (count) {
      if (count % 2) total = grid.add(total, law)
      if (count > 1) law = grid.add(law, law)
      count = Math.floor(count / 2)
    }
  }
  const mu = fraction(squareRoot(ceil(times(squares, [4n ** 96n, 1n]))) + 1n, 2n ** 96n)
  const cells = BigInt(total.row.length)
  let found = total.infinite << W
  total.row.forEach((mass, i) => {
    const y = minus(epsilon, grid.at(total.first + i))
    if (mass * cells <= grid.tail) found += mass * ONE
    else if (squares[0]) found += mass * gaussian(mu, y)
    else if (y[0] < 0n) found += mass * (ONE - exp(y)[0])
  })
  return fraction(found, ONE << grid.bits)
}

/** JSON with sorted keys and no space; all text is ASCII in an accepted certificate. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  const keys = Object.keys(value).sort()
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`
}

/** The certificate in these bytes. Throws unless its claim is proved. */
export function check(bytes) {
  need(bytes.length <= MOST_BYTES, "a file that is too large")
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  const claim = JSON.parse(text)
  need(/^[\x20-\x7e]*\n$/.test(text) && text === `${canonical(claim)}\n`, "not in canonical form")
  need(claim !== null && !Array.isArray(claim) && Object.keys(claim).sort().join() === KEYS, "not the keys of a certificate")
  need(claim.format === "ldp-budget total" && whole(claim.version, 1, 1), "another format or version")
  need(Array.isArray(claim.charges) && 0 < claim.charges.length && claim.charges.length <= 256, "not a list of charges")
  for (const charge of claim.charges) {
    need(charge !== null && typeof charge === "object" && typeof charge.kind === "string", "not a charge")
    need(Object.hasOwn(KINDS, charge.kind), "a charge of an unknown kind")
    const keys = ["count", "kind", ...KINDS[charge.kind]].sort()
    need(Object.keys(charge).sort().join() === keys.join(), "not the keys of a charge")
    whole(charge.count, 1, 10 ** 9)
  }
  const allowed = number(claim.delta, [1n, 1n])
  need(compare(deltaOf(claim), allowed) <= 0 && compare(allowed, [1n, 1n]) < 0, "not proved")
  return claim
}

function main(files) {
  for (const file of files) {
    try {
      need(statSync(file).isFile() && statSync(file).size <= MOST_BYTES, "a file that is too large, or none")
      const { epsilon, delta } = check(readFileSync(file))
      console.log(`PROVED: epsilon ${epsilon} at delta ${delta}: ${file}`)
    } catch (error) {
      console.log(`REFUSED: ${String(error.message).slice(0, 300).replace(/[^ -~]/g, "?")}: ${file}`)
      process.exitCode = 1
    }
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2))
