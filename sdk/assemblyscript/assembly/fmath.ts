// Arithmetic with the same bits everywhere: a port of sdk/fmath, which documents
// its precision and the results for special values.

import {
  EXP, EXP10_C1, EXP10_C2, EXP10_C3, EXP10_C4, EXP10_C5, EXP10_PER_STEP, EXP10_STEP_HI, EXP10_STEP_LO,
  EXP_PER_STEP, EXP_STEP_HI, EXP_STEP_LO, LN2_HI, LN2_LO, LOG,
} from "./tables";

/** Adding and subtracting it rounds to a whole number: 1.5 * 2^52. */
const ROUND: f64 = 6755399441055744.0;
const TWO54: f64 = 18014398509481984.0;
const TWO100: f64 = 1267650600228229401496703205376.0;
const TWO_MINUS_60: f64 = 8.673617379884035e-19;

// @ts-ignore: decorator
@inline
function float(bits: u64): f64 {
  return reinterpret<f64>(bits);
}

// @ts-ignore: decorator
@inline
function bitsOf(x: f64): u64 {
  return reinterpret<u64>(x);
}

/** 2^n for n from -1022 to 1023. */
// @ts-ignore: decorator
@inline
function power2(n: i64): f64 {
  return float(<u64>(n + 1023) << 52);
}

/** e^z-1 for small z. */
// @ts-ignore: decorator
@inline
function expTerm(z: f64): f64 {
  const z2 = z * z;
  return z + z2 * (1.0 / 2.0 + z * (1.0 / 6.0)) + z2 * z2 * (1.0 / 24.0 + z * (1.0 / 120.0));
}

/** 10^r-1 for small r. */
// @ts-ignore: decorator
@inline
function exp10Term(r: f64): f64 {
  const r2 = r * r;
  return r * EXP10_C1 + r2 * (EXP10_C2 + r * EXP10_C3) + r2 * r2 * (EXP10_C4 + r * EXP10_C5);
}

// @ts-ignore: decorator
@inline
function expEntry(k: i64): usize {
  return EXP + (<usize>(k & 127) << 4);
}

/**
 * 2^(k/128) * (1+p) for results that an f64 may not hold with full precision:
 * it computes in the normal range and scales last.
 */
function expScale(k: i64, p: f64): f64 {
  const at = expEntry(k), m = load<f64>(at), y = m + m * (load<f64>(at, 8) + p), exponent = k >> 7;
  if (exponent > 0) return y * TWO100 * power2(exponent - 100);
  return y * power2(exponent + 100) * (1.0 / TWO100);
}

/** The same for results in the normal range. */
// @ts-ignore: decorator
@inline
function expFast(k: i64, p: f64): f64 {
  const at = expEntry(k), scale = float(load<u64>(at) + (<u64>(k >> 7) << 52));
  return scale + scale * (load<f64>(at, 8) + p);
}

/** e^(x+lo), where lo is below the precision of x. */
function expOf(x: f64, lo: f64): f64 {
  const n = x * EXP_PER_STEP + ROUND - ROUND;
  return expScale(<i64>n, expTerm(x - n * EXP_STEP_HI - n * EXP_STEP_LO + lo));
}

function expEdge(x: f64): f64 {
  if (x != x) return x;
  if (x > 720.0) return Infinity;
  if (x < -750.0) return 0.0;
  return expOf(x, 0.0);
}

/** e^x. */
export function exp(x: f64): f64 {
  if (!(x > -700.0 && x < 709.0)) return expEdge(x);
  const shifted = x * EXP_PER_STEP + ROUND, n = shifted - ROUND;
  const k = <i64>(bitsOf(shifted) << 13) >> 13;
  return expFast(k, expTerm(x - n * EXP_STEP_HI - n * EXP_STEP_LO));
}

/** 10^x. */
export function exp10(x: f64): f64 {
  if (x != x) return x;
  if (x > 310.0) return Infinity;
  if (x < -325.0) return 0.0;
  const n = x * EXP10_PER_STEP + ROUND - ROUND;
  const p = exp10Term(x - n * EXP10_STEP_HI - n * EXP10_STEP_LO);
  return x > -304.0 && x < 308.0 ? expFast(<i64>n, p) : expScale(<i64>n, p);
}

// The results of logParts: w, r and rest such that the logarithm of the number
// with the given bits is w + rest + ln(1+r), up to the square of rest.
let partW: f64 = 0, partR: f64 = 0, partRest: f64 = 0;

// @ts-ignore: decorator
@inline
function logParts(bits: u64): void {
  const i = <usize>((bits >> 45) & 127), mantissa = bits & ((<u64>1 << 52) - 1);
  let k = (<i64>bits >> 52) - 1023, one: u64 = 1023 << 52;
  if (i >= 53) {
    k++;
    one = 1022 << 52;
  }
  const z = float(mantissa | one), high = float(((mantissa >> 27) << 27) | one);
  const at = LOG + 24 * i, inverse = load<f64>(at);
  const a = high * inverse - 1.0, b = (z - high) * inverse, r = a + b;
  const t = r - a, lost = a - (r - t) + (b - t), n = <f64>k;
  partW = n * LN2_HI + load<f64>(at, 8);
  partR = r;
  partRest = n * LN2_LO + load<f64>(at, 16) + (lost - lost * r);
}

/** The natural logarithm of x. */
export function log(x: f64): f64 {
  let bits = bitsOf(x);
  if (bits - 0x0010000000000000 >= 0x7fe0000000000000) {
    if (x != x || x > f64.MAX_VALUE) return x;
    if (x < 0.0) return NaN;
    if (x == 0.0) return -Infinity;
    bits = bitsOf(x * TWO54) - (<u64>54 << 52);
  }
  logParts(bits);
  const w = partW, r = partR, rest = partRest, r2 = r * r;
  const q = r2 * (-1.0 / 2.0 + r * (1.0 / 3.0) + r2 * (-1.0 / 4.0 + r * (1.0 / 5.0)) +
    r2 * r2 * (-1.0 / 6.0 + r * (1.0 / 7.0) + r2 * (-1.0 / 8.0 + r * (1.0 / 9.0))));
  const hi = w + r, lo = w - hi + r;
  return hi + (lo + rest + q);
}

/** x*y-p exactly, where p is x*y rounded. */
// @ts-ignore: decorator
@inline
function productError(x: f64, y: f64, p: f64): f64 {
  const x1 = float((bitsOf(x) >> 27) << 27), y1 = float((bitsOf(y) >> 27) << 27);
  const x2 = x - x1, y2 = y - y1;
  return x1 * y1 - p + x1 * y2 + x2 * y1 + x2 * y2;
}

/** The smaller part of the result of logPair. */
let pairLow: f64 = 0;

/** ln(x) as a sum of two numbers. */
function logPair(x: f64): f64 {
  let bits = bitsOf(x);
  if (bits < <u64>1 << 52) bits = bitsOf(x * TWO54) - (<u64>54 << 52);
  logParts(bits);
  const w = partW, r = partR, rest = partRest;
  const r2 = r * r, square = productError(r, r, r2), r4 = r2 * r2;
  const cubic = 1.0 / 3.0 - r * (1.0 / 4.0) + r2 * (1.0 / 5.0 - r * (1.0 / 6.0)) +
    r4 * (1.0 / 7.0 - r * (1.0 / 8.0) + r2 * (1.0 / 9.0 - r * (1.0 / 10.0)) + r4 * (1.0 / 11.0));
  const a = w + r, lostA = w - a + r, b = a - 0.5 * r2, lostB = a - b - 0.5 * r2;
  const tail = lostA + lostB + rest - 0.5 * square + r * r2 * cubic, hi = b + tail;
  pairLow = b - hi + tail;
  return hi;
}

/** x^y for finite x above zero and finite y. */
function powPositive(x: f64, y: f64): f64 {
  const hi = logPair(x), lo = pairLow, e = y * hi;
  if (e > 720.0) return Infinity;
  if (e < -750.0) return 0.0;
  if (abs(e) < TWO_MINUS_60) return 1.0;
  return expOf(e, productError(y, hi, e) + y * lo);
}

/** x^y. */
export function pow(x: f64, y: f64): f64 {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return NaN;
  if (y == 1.0) return x;
  const ax = abs(x), ay = abs(y), whole = y == trunc(y);
  const odd = whole && ay < 9007199254740992.0 && (<i64>y & 1) != 0;
  const sign: f64 = <bool>(bitsOf(x) >> 63) && odd ? -1.0 : 1.0;
  if (ay == Infinity) return ax == 1.0 ? 1.0 : (ax > 1.0) == (y > 0.0) ? Infinity : 0.0;
  if (ax == 0.0 || ax == Infinity) return sign * ((ax == 0.0) == (y < 0.0) ? Infinity : 0.0);
  if (x < 0.0 && !whole) return NaN;
  return sign * powPositive(ax, y);
}

/** The square root of x, correctly rounded. */
// @ts-ignore: decorator
@inline
export function sqrt(x: f64): f64 {
  return f64.sqrt(x);
}
