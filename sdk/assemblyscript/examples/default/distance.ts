// The distances that both searches use.
import { Ints, Rows, isPresent, sqrt } from "../../assembly";

/**
 * Reports whether the distance with square a is smaller than that with square b. Two
 * roots can round to the same only where the squares are within a few units in
 * the last place of one another, so most comparisons take no root.
 */
// @ts-ignore: decorator
@inline
export function closer(a: f64, b: f64): bool {
  return a < b * (1.0 - 1.0 / 1125899906842624.0) || (a < b && sqrt(a) < sqrt(b));
}

/** Reports whether a row can better run elsewhere than another one. */
// @ts-ignore: decorator
@inline
export function relocatesBetter(r: Rows, a: i32, b: i32): bool {
  if (!isPresent(r.relocation)) return false;
  if (r.relocation[a] != r.relocation[b]) return r.relocation[a] < r.relocation[b];
  if (r.displacedPriority[a] != r.displacedPriority[b]) return r.displacedPriority[a] < r.displacedPriority[b];
  return r.displacedLostWork[a] < r.displacedLostWork[b];
}

/** The square of the relative distance of a use from the remaining need. */
// @ts-ignore: decorator
@inline
export function square(left: f64, using: f64): f64 {
  const r = (left - using) / left;
  return r * r;
}

/** The end of the rows from `from` on that have its priority. */
// @ts-ignore: decorator
@inline
export function groupEnd(priority: Ints, from: i32, end: i32): i32 {
  const p = priority[from];
  let to = from + 1;
  while (to < end && priority[to] == p) to++;
  return to;
}
