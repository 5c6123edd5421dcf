// The rules for any number of dimensions and device requests.
import { Candidates, Floats, Selection, isPresent } from "../../assembly";
import { closer, groupEnd, relocatesBetter, square } from "./distance";

/**
 * The remaining need of some columns, and the amounts that rows free. It is created once,
 * and grows if a call has more columns.
 */
class Left {
  columns: StaticArray<usize> = new StaticArray<usize>(16);
  amounts: StaticArray<f64> = new StaticArray<f64>(16);
  length: i32 = 0;

  reserve(n: i32): void {
    this.length = 0;
    if (n <= this.columns.length) return;
    this.columns = new StaticArray<usize>(2 * n);
    this.amounts = new StaticArray<f64>(2 * n);
  }

  add(column: Floats, amount: f64): void {
    if (!(amount > 0.0)) return;
    unchecked((this.columns[this.length] = changetype<usize>(column)));
    unchecked((this.amounts[this.length] = amount));
    this.length++;
  }

  frees(k: i32, row: i32): f64 {
    return changetype<Floats>(unchecked(this.columns[k]))[row];
  }

  /** Subtracts the amounts that row frees, and drops covered columns. */
  subtract(row: i32): void {
    const n = this.length;
    this.length = 0;
    for (let k = 0; k < n; k++) {
      this.add(changetype<Floats>(unchecked(this.columns[k])), unchecked(this.amounts[k]) - this.frees(k, row));
    }
  }

  /** The square of the distance of a row. */
  square(row: i32): f64 {
    let sum: f64 = 0;
    for (let k = 0; k < this.length; k++) sum += square(unchecked(this.amounts[k]), this.frees(k, row));
    return sum;
  }
}

/** The reference of distances: the ask less the amounts that picked rows free. */
const need = new Left();
/** The shortage of the option, of dimensions and of device requests. */
const lack = new Left();
let must: i32 = 0;
/** The rows of a group that were picked. */
let gone = new StaticArray<bool>(64);

export function selectAny(q: Candidates, out: Selection): void {
  const priority = q.rows.priority;
  for (let i = 0; i < q.length; i++) {
    reset(q, i);
    const end = q.firstRow[i + 1];
    for (let from = q.firstRow[i]; from < end && !covered(); ) {
      const to = groupEnd(priority, from, end);
      pickGroup(q, out, from, to - from);
      from = to;
    }
    out.next();
  }
}

/** Starts option i with no row picked. */
export function reset(q: Candidates, i: i32): void {
  need.reserve(q.dims);
  lack.reserve(q.dims + q.preemptor.requests);
  for (let d = 0; d < q.dims; d++) {
    need.add(q.rows.use.column(d), q.preemptor.ask[d]);
    lack.add(q.rows.use.column(d), q.need.column(d)[i]);
  }
  for (let r = 0; r < q.deviceNeed.columns; r++) lack.add(q.rows.devices.column(r), q.deviceNeed.column(r)[i]);
  must = q.rows.length > 0 && isPresent(q.mustLeave) ? q.mustLeave[i] : 0;
}

export function covered(): bool {
  return lack.length == 0 && must == 0;
}

/** Picks from n rows of one priority until the option fits or none is left. */
function pickGroup(q: Candidates, out: Selection, from: i32, n: i32): void {
  if (n > gone.length) gone = new StaticArray<bool>(2 * n);
  for (let j = 0; j < n; j++) unchecked((gone[j] = false));
  for (let left = n; left > 0 && !covered(); left--) {
    const j = nearest(q, from, n);
    unchecked((gone[j] = true));
    pick(q, out, from + j);
  }
}

export function pick(q: Candidates, out: Selection, row: i32): void {
  out.pick(row);
  lack.subtract(row);
  need.subtract(row);
  if (must > 0 && q.rows.mustLeave[row]) must--;
}

/**
 * The row first+j, of n, that is nearest to the need among those not picked; of equals the
 * one that can best run elsewhere, then the first.
 */
function nearest(q: Candidates, first: i32, n: i32): i32 {
  let best = -1, least: f64 = Infinity;
  for (let j = 0; j < n; j++) {
    if (unchecked(gone[j])) continue;
    if (best < 0) best = j;
    const sum = need.square(first + j);
    if (closer(sum, least)) {
      best = j;
      least = sum;
    } else if (!closer(least, sum) && relocatesBetter(q.rows, first + j, first + best)) {
      best = j;
    }
  }
  return best;
}
