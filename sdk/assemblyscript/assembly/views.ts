import { Texts } from "./texts";

/** A column of f64: an address in the frame. It checks no bounds. */
@unmanaged
export class Floats {
  // @ts-ignore: decorator
  @inline @operator("[]")
  at(i: i32): f64 {
    return load<f64>(changetype<usize>(this) + (<usize>i << 3));
  }
  // @ts-ignore: decorator
  @inline @operator("[]=")
  put(i: i32, value: f64): void {
    store<f64>(changetype<usize>(this) + (<usize>i << 3), value);
  }
}

/** A column of i64. */
@unmanaged
export class Longs {
  // @ts-ignore: decorator
  @inline @operator("[]")
  at(i: i32): i64 {
    return load<i64>(changetype<usize>(this) + (<usize>i << 3));
  }
  // @ts-ignore: decorator
  @inline @operator("[]=")
  put(i: i32, value: i64): void {
    store<i64>(changetype<usize>(this) + (<usize>i << 3), value);
  }
}

/** A column of i32: numbers, or numbers of texts. */
@unmanaged
export class Ints {
  // @ts-ignore: decorator
  @inline @operator("[]")
  at(i: i32): i32 {
    return load<i32>(changetype<usize>(this) + (<usize>i << 2));
  }
  // @ts-ignore: decorator
  @inline @operator("[]=")
  put(i: i32, value: i32): void {
    store<i32>(changetype<usize>(this) + (<usize>i << 2), value);
  }
}

/** A column of u8. */
@unmanaged
export class Bytes {
  // @ts-ignore: decorator
  @inline @operator("[]")
  at(i: i32): u8 {
    return load<u8>(changetype<usize>(this) + <usize>i);
  }
}

/** Reports whether the frame has a column. */
// @ts-ignore: decorator
@inline
export function isPresent<T>(column: T): bool {
  return changetype<usize>(column) != 0;
}

/** A column per dimension or per device request, one after the other. */
@unmanaged
export class Table {
  data: usize;
  /** The number of columns; 0 if the host sent no such table. */
  columns: i32;
  length: i32;

  /** Column k. */
  // @ts-ignore: decorator
  @inline
  column(k: i32): Floats {
    return changetype<Floats>(this.data + ((<usize>k * <usize>this.length) << 3));
  }
}

/** Table of whole numbers. */
@unmanaged
export class IntTable {
  data: usize;
  columns: i32;
  length: i32;

  /** Column k. */
  // @ts-ignore: decorator
  @inline
  column(k: i32): Ints {
    return changetype<Ints>(this.data + ((<usize>k * <usize>this.length) << 2));
  }
}

/** Labels (text) or annotations (number), by the texts of their names. */
@unmanaged
export class Pairs {
  length: i32;
  name: Ints = changetype<Ints>(0);
  text: Ints = changetype<Ints>(0);
  number: Floats = changetype<Floats>(0);
}

/** The group that needs capacity. */
@unmanaged
export class Preemptor {
  /** Texts. */
  namespace: i32;
  job: i32;
  group: i32;
  /** Text: service, batch, system, sysbatch. */
  jobType: i32;
  priority: i32;
  /** Base gap: that of the configuration, else info.delta. */
  delta: i32;
  /** By dimension. */
  ask: Floats = changetype<Floats>(0);
  /** Host ports needed. */
  ports: i32;
  /** Number of device requests. */
  requests: i32;
  /** By request: identifier (text), instances. */
  device: Ints = changetype<Ints>(0);
  deviceCount: Ints = changetype<Ints>(0);
  /** The time that the group has waited, ns. */
  waiting: i64;
  /** Evaluations of the job that did not place the whole group. */
  attempts: i32;
  /** Columns.LABEL, Columns.ANNOTATION */
  labels: Pairs = new Pairs();
  annotations: Pairs = new Pairs();
}

/** A table of allocations: candidates, or the victims of options. */
@unmanaged
export class Rows {
  length: i32;
  priority: Ints = changetype<Ints>(0);
  /** By dimension. */
  use: Table = new Table();
  /** ns since 1970 */
  start: Longs = changetype<Longs>(0);
  /** The work that an eviction now loses, ns. */
  lostWork: Longs = changetype<Longs>(0);
  /** Texts; job and group are unique IDs, not names. */
  namespace: Ints = changetype<Ints>(0);
  job: Ints = changetype<Ints>(0);
  group: Ints = changetype<Ints>(0);
  /** Victims of its group in this plan so far, and their limit; 0: none. */
  evictions: Ints = changetype<Ints>(0);
  evictionLimit: Ints = changetype<Ints>(0);
  /** Bits: 1 port, 2 separation. */
  mustLeave: Bytes = changetype<Bytes>(0);
  /** Instances held of the device group chosen for the request, by request. */
  devices: Table = new Table();
  /** Labels of row i are firstLabel[i] to firstLabel[i+1] of labelKey and labelValue, texts. */
  firstLabel: Ints = changetype<Ints>(0);
  labelKey: Ints = changetype<Ints>(0);
  labelValue: Ints = changetype<Ints>(0);
  /** Texts, one per column of annotations, which are NaN if a row has none. */
  annotationName: Ints = changetype<Ints>(0);
  annotations: Table = new Table();
  /**
   * Columns.BUDGET: evicting row i costs one of each of the budgets firstBudget[i]
   * to firstBudget[i+1] of budget: rows of those of shared.
   */
  firstBudget: Ints = changetype<Ints>(0);
  budget: Ints = changetype<Ints>(0);
  /**
   * Columns.RELOCATION: where the row could run if it were evicted alone, one of the
   * constants FITS_*; the highest priority, and the lost work in ns, that it would evict
   * there in its turn: i32.MIN_VALUE and 0 unless it is FITS_BY_EVICTING.
   */
  relocation: Bytes = changetype<Bytes>(0);
  displacedPriority: Ints = changetype<Ints>(0);
  displacedLostWork: Longs = changetype<Longs>(0);
}

/**
 * A value of rows.relocation: another node has enough free capacity. The values are in the
 * order of preference.
 */
export const FITS_ELSEWHERE: u8 = 0;
/** Another node has, once allocations that the row may evict have left. */
export const FITS_BY_EVICTING: u8 = 1;
/** No other node that the host has examined. */
export const FITS_NOWHERE: u8 = 2;

/** Input that is the same for every option. */
@unmanaged
export class Shared {
  /** Of all ready nodes, by dimension; absent if the host has no such tables. */
  capacity: Floats = changetype<Floats>(0);
  namespaces: i32;
  /** By namespace: name (text), weight; use by dimension. */
  namespace: Ints = changetype<Ints>(0);
  weight: Floats = changetype<Floats>(0);
  use: Table = new Table();
  budgets: i32;
  /**
   * By disruption budget: a unique ID (text), how many more rows may be evicted before
   * it is overrun, and 1 if the host refuses evictions that overrun it.
   */
  budgetName: Ints = changetype<Ints>(0);
  budgetSlack: Ints = changetype<Ints>(0);
  budgetStrict: Bytes = changetype<Bytes>(0);
}

/**
 * The input of priorityDelta, scoreVictims, selectVictims and preemptBindings:
 * options that do not fit yet, with the rows that may be evicted for them. For
 * preemptBindings an option is a member cluster, and a row is the replicas of another
 * binding there.
 */
@unmanaged
export class Candidates {
  now: i64;
  /** The number of options. */
  length: i32;
  dims: i32;
  preemptor: Preemptor = new Preemptor();
  /** Names of the dimensions, texts. */
  dim: Ints = changetype<Ints>(0);
  /** An element more than there are options. */
  firstRow: Ints = changetype<Ints>(0);
  /** The missing amount, by dimension; zero or less: none. */
  need: Table = new Table();
  /** The amount that earlier picks free, by dimension. */
  freed: Table = new Table();
  /** Missing instances, by request. */
  deviceNeed: Table = new Table();
  /** Rows of the option that must leave. */
  mustLeave: Ints = changetype<Ints>(0);
  /** The node, text. */
  place: Ints = changetype<Ints>(0);
  /** Of the node, by dimension. */
  capacity: Table = new Table();
  reserved: Table = new Table();
  free: Table = new Table();
  own: Table = new Table();
  rows: Rows = new Rows();
  shared: Shared = new Shared();
  texts: Texts = new Texts();
}

/** The input of scoreOptions: options that fit once their victims are evicted. */
@unmanaged
export class Options {
  now: i64;
  /** The number of options. */
  length: i32;
  dims: i32;
  preemptor: Preemptor = new Preemptor();
  /** Names of the dimensions, texts. */
  dim: Ints = changetype<Ints>(0);
  /** Equal values: the same node. */
  node: Ints = changetype<Ints>(0);
  /** Of the victims. */
  highestPriority: Ints = changetype<Ints>(0);
  victimCount: Ints = changetype<Ints>(0);
  prioritySum: Longs = changetype<Longs>(0);
  /** ns, all victims together. */
  lostWork: Longs = changetype<Longs>(0);
  /**
   * Columns.START: the earliest start among the victims with the highest priority, ns
   * since 1970; absent with an older host.
   */
  start: Longs = changetype<Longs>(0);
  /** Columns.BUDGET: victims whose eviction overruns a budget. */
  violations: Ints = changetype<Ints>(0);
  /**
   * Columns.RELOCATION: victims with FITS_NOWHERE, and with FITS_BY_EVICTING; the highest
   * priority that the latter would evict, i32.MIN_VALUE if there are none, and the lost work
   * of all that they would evict, ns.
   */
  stranded: Ints = changetype<Ints>(0);
  displacing: Ints = changetype<Ints>(0);
  displacedPriority: Ints = changetype<Ints>(0);
  displacedLostWork: Longs = changetype<Longs>(0);
  /**
   * Columns.LOOKAHEAD: what follows from the option if no other work arrives: lost work of
   * all evictions, ns; length of the longest chain of evictions; time for which evicted
   * instances do not run, ns. Zero where the host has not played it.
   */
  expectedLostWork: Longs = changetype<Longs>(0);
  cascadeDepth: Ints = changetype<Ints>(0);
  expectedDelay: Longs = changetype<Longs>(0);
  /** The node, text. */
  place: Ints = changetype<Ints>(0);
  /** Instances missing before any eviction, and the device group, by request. */
  deviceNeed: Table = new Table();
  deviceGroup: IntTable = new IntTable();
  /** In [0, 1], with the victims counted and without them. */
  fitBefore: Floats = changetype<Floats>(0);
  fitAfter: Floats = changetype<Floats>(0);
  /** Anti-affinity, affinity, spread: each in [-1, 1]. */
  components: Table = new Table();
  /** The components that count, bits 0 to 2. */
  present: Bytes = changetype<Bytes>(0);
  /** Missing before any eviction, by dimension. */
  need: Table = new Table();
  /** An element more than there are options; rows of victims. */
  firstVictim: Ints = changetype<Ints>(0);
  victims: Rows = new Rows();
  shared: Shared = new Shared();
  texts: Texts = new Texts();
}
