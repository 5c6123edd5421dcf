// The rules for up to four dimensions, no devices and up to 64 rows of one
// priority, which covers most calls: all but the columns stays in
// variables, which a host keeps in registers. A dimension counts while its need,
// or its lack, is above zero. Unused dimensions have neither.
import { Bytes, Candidates, Floats, Selection } from "../../assembly";
import { closer, groupEnd, relocatesBetter, square } from "./distance";

// @ts-ignore: decorator
@inline
function useOf(q: Candidates, d: i32): Floats {
  return q.rows.use.column(d < q.dims ? d : 0);
}

// @ts-ignore: decorator
@inline
function askOf(q: Candidates, d: i32): f64 {
  return d < q.dims ? q.preemptor.ask[d] : 0.0;
}

// @ts-ignore: decorator
@inline
function lackOf(q: Candidates, d: i32, i: i32): f64 {
  return d < q.dims ? q.need.column(d)[i] : 0.0;
}

/** Returns false if the input exceeds these limits. */
export function selectFew(q: Candidates, out: Selection): bool {
  if (q.dims > 4 || q.preemptor.requests > 0) return false;
  const priority = q.rows.priority, mustLeave: Bytes = q.rows.mustLeave;
  const u0 = useOf(q, 0), u1 = useOf(q, 1), u2 = useOf(q, 2), u3 = useOf(q, 3);
  for (let i = 0; i < q.length; i++) {
    let n0 = askOf(q, 0), n1 = askOf(q, 1), n2 = askOf(q, 2), n3 = askOf(q, 3);
    let l0 = lackOf(q, 0, i), l1 = lackOf(q, 1, i), l2 = lackOf(q, 2, i), l3 = lackOf(q, 3, i);
    let must = q.rows.length > 0 ? q.mustLeave[i] : 0;
    let fits = !(l0 > 0 || l1 > 0 || l2 > 0 || l3 > 0) && must == 0;
    const end = q.firstRow[i + 1];
    for (let from = q.firstRow[i], to = 0; from < end && !fits; from = to) {
      to = groupEnd(priority, from, end);
      if (to - from > 64) {
        out.restart();
        return false;
      }
      // Rows of the group are picked until the option fits or none remains; a bit
      // marks each picked row.
      let gone: u64 = 0;
      for (let left = to - from; left > 0 && !fits; left--) {
        let best = from + <i32>ctz(~gone);
        if (left > 1) {
          let least: f64 = Infinity;
          for (let row = best; row < to; row++) {
            if ((gone >> <u64>(row - from)) & 1) continue;
            let sum: f64 = 0;
            if (n0 > 0) sum += square(n0, u0[row]);
            if (n1 > 0) sum += square(n1, u1[row]);
            if (n2 > 0) sum += square(n2, u2[row]);
            if (n3 > 0) sum += square(n3, u3[row]);
            if (closer(sum, least)) {
              best = row;
              least = sum;
            } else if (!closer(least, sum) && relocatesBetter(q.rows, row, best)) {
              best = row;
            }
          }
        }
        gone |= <u64>1 << <u64>(best - from);
        out.pick(best);
        if (n0 > 0 || l0 > 0) {
          n0 -= u0[best];
          l0 -= u0[best];
        }
        if (n1 > 0 || l1 > 0) {
          n1 -= u1[best];
          l1 -= u1[best];
        }
        if (n2 > 0 || l2 > 0) {
          n2 -= u2[best];
          l2 -= u2[best];
        }
        if (n3 > 0 || l3 > 0) {
          n3 -= u3[best];
          l3 -= u3[best];
        }
        if (must > 0 && mustLeave[best]) must--;
        fits = !(l0 > 0 || l1 > 0 || l2 > 0 || l3 > 0) && must == 0;
      }
    }
    out.next();
  }
  return true;
}
