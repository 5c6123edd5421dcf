// Views of frames: the column of the frame for each field.

import * as frame from "./frame";
import { F64, I32, I64, U8 } from "./frame";
import { Config } from "./settings";
import { Texts } from "./texts";
import { Bytes, Candidates, Floats, IntTable, Ints, Longs, Options, Pairs, Preemptor, Rows, Shared, Table } from "./views";

function ints(id: u32, n: u64): Ints {
  return changetype<Ints>(frame.find(id, I32, n));
}

function longs(id: u32, n: u64): Longs {
  return changetype<Longs>(frame.find(id, I64, n));
}

function floats(id: u32, n: u64): Floats {
  return changetype<Floats>(frame.find(id, F64, n));
}

function bytes(id: u32, n: u64): Bytes {
  return changetype<Bytes>(frame.find(id, U8, n));
}

function mustInts(id: u32, n: u64): Ints {
  return changetype<Ints>(frame.must(id, I32, n));
}

function mustFloats(id: u32, n: u64): Floats {
  return changetype<Floats>(frame.must(id, F64, n));
}

function table(t: Table, id: u32, columns: u32, length: u32): void {
  t.data = frame.find(id, F64, <u64>columns * <u64>length);
  t.columns = t.data ? columns : 0;
  t.length = length;
}

function intTable(t: IntTable, id: u32, columns: u32, length: u32): void {
  t.data = frame.find(id, I32, <u64>columns * <u64>length);
  t.columns = t.data ? columns : 0;
  t.length = length;
}

function texts(t: Texts): void {
  t.length = frame.count(0x0101);
  t.end = ints(0x0101, t.length);
  t.size = frame.count(0x0102);
  t.bytes = bytes(0x0102, t.size);
}

function preemptor(p: Preemptor): void {
  const requests = frame.requests;
  p.priority = frame.word(0x0201);
  p.delta = frame.word(0x0202);
  p.ask = mustFloats(0x0203, frame.dims);
  p.ports = frame.word(0x0204);
  p.namespace = frame.word(0x0205);
  p.job = frame.word(0x0206);
  p.group = frame.word(0x0207);
  p.jobType = frame.word(0x0208);
  p.waiting = frame.long(0x0209);
  p.attempts = frame.word(0x020a);
  p.requests = requests;
  p.device = mustInts(0x020b, requests);
  p.deviceCount = mustInts(0x020c, requests);
  const labels: Pairs = p.labels, notes: Pairs = p.annotations;
  labels.length = frame.count(0x020d);
  labels.name = ints(0x020d, labels.length);
  labels.text = mustInts(0x020e, labels.length);
  notes.length = frame.count(0x020f);
  notes.name = ints(0x020f, notes.length);
  notes.number = mustFloats(0x0210, notes.length);
}

function rowsOf(r: Rows): void {
  const n = frame.rows, labels = frame.count(0x040d), names = frame.count(0x040f), budgets = frame.count(0x0412);
  r.length = n;
  r.priority = ints(0x0401, n);
  table(r.use, 0x0402, frame.dims, n);
  r.start = longs(0x0403, n);
  r.lostWork = longs(0x0404, n);
  r.namespace = ints(0x0405, n);
  r.job = ints(0x0406, n);
  r.group = ints(0x0407, n);
  r.evictions = ints(0x0408, n);
  r.evictionLimit = ints(0x0409, n);
  r.mustLeave = bytes(0x040a, n);
  table(r.devices, 0x040b, frame.requests, n);
  r.firstLabel = ints(0x040c, <u64>n + 1);
  r.labelKey = ints(0x040d, labels);
  r.labelValue = mustInts(0x040e, labels);
  r.annotationName = ints(0x040f, names);
  table(r.annotations, 0x0410, names, n);
  frame.must(0x0410, F64, <u64>names * <u64>n);
  frame.checkAscending(changetype<usize>(r.firstLabel), n + 1, labels);
  r.firstBudget = ints(0x0411, <u64>n + 1);
  r.budget = ints(0x0412, budgets);
  frame.checkAscending(changetype<usize>(r.firstBudget), n + 1, budgets);
  frame.checkBelow(changetype<usize>(r.budget), budgets, frame.count(0x0506));
  r.relocation = bytes(0x0413, n);
  r.displacedPriority = ints(0x0414, n);
  r.displacedLostWork = longs(0x0415, n);
}

function shared(s: Shared): void {
  const n = frame.count(0x0502), budgets = frame.count(0x0506);
  s.capacity = floats(0x0501, frame.dims);
  s.namespaces = n;
  s.namespace = ints(0x0502, n);
  s.weight = mustFloats(0x0503, n);
  table(s.use, 0x0504, frame.dims, n);
  s.budgets = budgets;
  s.budgetName = mustInts(0x0505, budgets);
  s.budgetSlack = ints(0x0506, budgets);
  s.budgetStrict = changetype<Bytes>(frame.must(0x0507, U8, budgets));
}

/** Reads the input of a hook about candidates; returns false if the frame is malformed. */
export function candidates(c: Candidates): bool {
  const n = frame.options, d = frame.dims;
  c.now = frame.now;
  c.length = n;
  c.dims = d;
  texts(c.texts);
  preemptor(c.preemptor);
  c.dim = mustInts(0x0301, d);
  c.firstRow = mustInts(0x0302, <u64>n + 1);
  table(c.need, 0x0303, d, n);
  frame.must(0x0303, F64, <u64>d * <u64>n);
  table(c.freed, 0x0304, d, n);
  table(c.deviceNeed, 0x0305, frame.requests, n);
  c.mustLeave = ints(0x0306, n);
  c.place = ints(0x0307, n);
  table(c.capacity, 0x0308, d, n);
  table(c.reserved, 0x0309, d, n);
  table(c.free, 0x030a, d, n);
  table(c.own, 0x030b, d, n);
  rowsOf(c.rows);
  frame.must(0x0401, I32, frame.rows);
  shared(c.shared);
  frame.checkAscending(changetype<usize>(c.firstRow), n + 1, frame.rows);
  return !frame.bad;
}

/** Reads the input of a hook about options. */
export function optionsOf(o: Options): bool {
  const n = frame.options, d = frame.dims;
  o.now = frame.now;
  o.length = n;
  o.dims = d;
  texts(o.texts);
  preemptor(o.preemptor);
  o.dim = mustInts(0x0301, d);
  o.node = mustInts(0x0601, n);
  o.highestPriority = mustInts(0x0602, n);
  o.victimCount = mustInts(0x0603, n);
  o.prioritySum = changetype<Longs>(frame.must(0x0604, I64, n));
  o.lostWork = longs(0x0605, n);
  o.start = longs(0x060b, n);
  o.violations = ints(0x060a, n);
  o.stranded = ints(0x060c, n);
  o.displacing = ints(0x060d, n);
  o.displacedPriority = ints(0x060e, n);
  o.displacedLostWork = longs(0x060f, n);
  o.expectedLostWork = longs(0x0610, n);
  o.cascadeDepth = ints(0x0611, n);
  o.expectedDelay = longs(0x0612, n);
  o.place = ints(0x0307, n);
  table(o.deviceNeed, 0x0305, frame.requests, n);
  intTable(o.deviceGroup, 0x030c, frame.requests, n);
  o.fitBefore = floats(0x0606, n);
  o.fitAfter = floats(0x0607, n);
  table(o.components, 0x0608, 3, n);
  o.present = bytes(0x0609, n);
  table(o.need, 0x0303, d, n);
  o.firstVictim = ints(0x0302, <u64>n + 1);
  rowsOf(o.victims);
  if (changetype<usize>(o.firstVictim) != 0) frame.must(0x0401, I32, frame.rows);
  shared(o.shared);
  frame.checkAscending(changetype<usize>(o.firstVictim), n + 1, frame.rows);
  return !frame.bad;
}

/** Reads a configuration. */
export function config(c: Config): bool {
  const n = frame.count(0x0701);
  c.length = n;
  c.name = ints(0x0701, n);
  c.kind = changetype<Bytes>(frame.must(0x0702, U8, n));
  c.item = mustInts(0x0703, n);
  c.integers = changetype<Longs>(frame.must(0x0704, I64, n));
  c.numbersOf = mustFloats(0x0705, n);
  c.text_ = mustInts(0x0706, n);
  texts(c.table);
  return !frame.bad;
}
