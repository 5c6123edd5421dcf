// A number that everything is folded into, one after the other.
import {
  Bytes, Candidates, Floats, Ints, Longs, Options, Preemptor, Rows, Shared, Table, Texts, isPresent,
} from "../../assembly";

export const BASIS: u64 = 0xcbf29ce484222325;
const PRIME: u64 = 0x100000001b3;

export let sum: u64 = 0;
let table_: Texts = changetype<Texts>(0); // of the question at hand

export function start(from: u64): void {
  sum = from;
}

export function add(x: i64): void {
  sum = (sum ^ <u64>x) * PRIME;
}

/** A number that follows from the sum, for a row or an option. */
export function part(k: i32): u64 {
  const p = (sum ^ <u64>k) * PRIME;
  return p ^ (p >> 29);
}

export function number(x: f64): void {
  add(reinterpret<i64>(x));
}

export function words(text: string): void {
  const b = String.UTF8.encode(text);
  bytes(changetype<Bytes>(changetype<usize>(b)), b.byteLength);
}

function text(id: i32): void {
  const from = table_.from(id);
  bytes(changetype<Bytes>(changetype<usize>(table_.bytes) + from), table_.to(id) - from);
}

// Columns that the frame lacks are empty.
function bytes(c: Bytes, n: i32): void {
  if (!isPresent(c)) n = 0;
  add(n);
  for (let i = 0; i < n; i++) add(c[i]);
}

function ints(c: Ints, n: i32): void {
  if (!isPresent(c)) n = 0;
  add(n);
  for (let i = 0; i < n; i++) add(c[i]);
}

function longs(c: Longs, n: i32): void {
  if (!isPresent(c)) n = 0;
  add(n);
  for (let i = 0; i < n; i++) add(c[i]);
}

function numbers(c: Floats, n: i32): void {
  if (!isPresent(c)) n = 0;
  add(n);
  for (let i = 0; i < n; i++) number(c[i]);
}

function texts(c: Ints, n: i32): void {
  if (!isPresent(c)) n = 0;
  add(n);
  for (let i = 0; i < n; i++) text(c[i]);
}

function table(t: Table): void {
  add(t.columns);
  for (let k = 0; k < t.columns; k++) numbers(t.column(k), t.length);
}

function preemptor(p: Preemptor, dims: i32): void {
  text(p.namespace);
  text(p.job);
  text(p.group);
  text(p.jobType);
  add(p.priority);
  add(p.delta);
  add(p.ports);
  add(p.attempts);
  add(p.waiting);
  numbers(p.ask, dims);
  add(p.requests);
  for (let r = 0; r < p.requests; r++) {
    text(p.device[r]);
    add(p.deviceCount[r]);
  }
  add(p.labels.length);
  for (let i = 0; i < p.labels.length; i++) {
    text(p.labels.name[i]);
    text(p.labels.text[i]);
  }
  add(p.annotations.length);
  for (let i = 0; i < p.annotations.length; i++) {
    text(p.annotations.name[i]);
    number(p.annotations.number[i]);
  }
}

function rows(r: Rows): void {
  const n = r.length, labels = isPresent(r.firstLabel) ? r.firstLabel[n] : 0;
  ints(r.priority, n);
  table(r.use);
  longs(r.start, n);
  longs(r.lostWork, n);
  texts(r.namespace, n);
  texts(r.job, n);
  texts(r.group, n);
  ints(r.evictions, n);
  ints(r.evictionLimit, n);
  bytes(r.mustLeave, n);
  table(r.devices);
  ints(r.firstLabel, n + 1);
  texts(r.labelKey, labels);
  texts(r.labelValue, labels);
  texts(r.annotationName, r.annotations.columns);
  table(r.annotations);
  if (isPresent(r.firstBudget)) {
    ints(r.firstBudget, n + 1);
    const budgets = r.firstBudget[n];
    if (budgets > 0) ints(r.budget, budgets);
  }
  if (!isPresent(r.relocation) || n == 0) return;
  bytes(r.relocation, n);
  ints(r.displacedPriority, n);
  longs(r.displacedLostWork, n);
}

function shared(s: Shared, dims: i32): void {
  numbers(s.capacity, dims);
  texts(s.namespace, s.namespaces);
  numbers(s.weight, s.namespaces);
  table(s.use);
  if (s.budgets == 0) return; // no trace: frames of the first version have none
  texts(s.budgetName, s.budgets);
  ints(s.budgetSlack, s.budgets);
  bytes(s.budgetStrict, s.budgets);
}

export function foldCandidates(seed: u64, q: Candidates): void {
  start(BASIS ^ seed);
  table_ = q.texts;
  add(q.now);
  preemptor(q.preemptor, q.dims);
  texts(q.dim, q.dims);
  ints(q.firstRow, q.length + 1);
  table(q.need);
  table(q.freed);
  table(q.deviceNeed);
  ints(q.mustLeave, q.length);
  texts(q.place, q.length);
  table(q.capacity);
  table(q.reserved);
  table(q.free);
  table(q.own);
  rows(q.rows);
  shared(q.shared, q.dims);
}

export function foldOptions(seed: u64, q: Options): void {
  const n = q.length;
  start(BASIS ^ seed);
  table_ = q.texts;
  add(q.now);
  preemptor(q.preemptor, q.dims);
  texts(q.dim, q.dims);
  ints(q.node, n);
  ints(q.highestPriority, n);
  ints(q.victimCount, n);
  longs(q.prioritySum, n);
  longs(q.lostWork, n);
  texts(q.place, n);
  if (isPresent(q.start) && n > 0) longs(q.start, n);
  if (isPresent(q.violations) && n > 0) ints(q.violations, n);
  if (isPresent(q.stranded) && n > 0) {
    ints(q.stranded, n);
    ints(q.displacing, n);
    ints(q.displacedPriority, n);
    longs(q.displacedLostWork, n);
  }
  if (isPresent(q.expectedLostWork) && n > 0) {
    longs(q.expectedLostWork, n);
    ints(q.cascadeDepth, n);
    longs(q.expectedDelay, n);
  }
  table(q.need);
  table(q.deviceNeed);
  add(q.deviceGroup.columns);
  for (let r = 0; r < q.deviceGroup.columns; r++) ints(q.deviceGroup.column(r), n);
  numbers(q.fitBefore, n);
  numbers(q.fitAfter, n);
  if (n > 0) table(q.components);
  else add(0);
  bytes(q.present, n);
  ints(q.firstVictim, n + 1);
  rows(q.victims);
  shared(q.shared, q.dims);
}
