// The rules for bindings.
import { BindingVictims, Candidates, Texts } from "../../assembly";
import { covered, pick, reset } from "./any";

/** The rows of an option in the order of eviction, and memory to sort them. */
let order = new StaticArray<i32>(64), spare = new StaticArray<i32>(64);

/** The order of two texts by their bytes. */
function compare(t: Texts, a: i32, b: i32): i32 {
  let i = t.from(a), j = t.from(b);
  const m = t.to(a), n = t.to(b);
  for (; i < m && j < n; i++, j++) {
    if (t.bytes[i] != t.bytes[j]) return t.bytes[i] < t.bytes[j] ? -1 : 1;
  }
  return i32(i < m) - i32(j < n);
}

/** Reports whether row x is evicted before row y. */
function leavesBefore(q: Candidates, x: i32, y: i32): bool {
  const r = q.rows;
  if (r.priority[x] != r.priority[y]) return r.priority[x] < r.priority[y];
  if (r.start[x] != r.start[y]) return r.start[x] > r.start[y];
  const names = compare(q.texts, r.job[x], r.job[y]);
  return names != 0 ? names > 0 : x < y;
}

/** Sorts the n rows from first on. It merges runs of twice the length each time. */
function sort(q: Candidates, first: i32, n: i32): void {
  if (n > order.length) {
    order = new StaticArray<i32>(2 * n);
    spare = new StaticArray<i32>(2 * n);
  }
  for (let k = 0; k < n; k++) unchecked((order[k] = first + k));
  for (let run = 1; run < n; run *= 2) {
    for (let start = 0; start < n; start += 2 * run) {
      const middle = min(start + run, n), end = min(middle + run, n);
      for (let k = start, a = start, b = middle; k < end; k++) {
        const right = a == middle || (b < end && leavesBefore(q, unchecked(order[b]), unchecked(order[a])));
        unchecked((spare[k] = order[right ? b++ : a++]));
      }
    }
    const swap = order;
    order = spare;
    spare = swap;
  }
}

/** Ranks option i by its rows. */
function rank(q: Candidates, i: i32, out: BindingVictims): void {
  const from = q.firstRow[i], to = q.firstRow[i + 1];
  let highest = <i64>i32.MIN_VALUE, sum: i64 = 0;
  for (let row = from; row < to; row++) {
    const p = <i64>q.rows.priority[row];
    highest = max(highest, p);
    sum += p - <i64>i32.MIN_VALUE; // another victim never lowers the sum
  }
  out.tier0[i] = to - from;
  out.tier1[i] = highest;
  out.tier2[i] = sum;
}

export function preempt(q: Candidates, out: BindingVictims): void {
  for (let i = 0; i < q.length; i++) {
    const first = q.firstRow[i], n = q.firstRow[i + 1] - first;
    sort(q, first, n);
    reset(q, i);
    for (let k = 0; k < n && !covered(); k++) pick(q, out.selection, unchecked(order[k]));
    out.selection.next();
    rank(q, i, out);
  }
}
