import { Floats, Ints, Longs } from "./views";

/** The score of a row that must not be evicted. */
export const NEVER: f64 = Infinity;

/** The time at which an answer may change by time alone. */
@unmanaged
export class Recheck {
  time: i64;

  /** Requests another evaluation at a time, ns since 1970. The earliest request counts. */
  at(time: i64): void {
    if (this.time == 0 || time < this.time) this.time = time;
  }
}

/**
 * The answer of priorityDelta: the least difference of priorities for which
 * each row may be evicted. On entry all are the base gap.
 */
@unmanaged
export class Gaps {
  gap: Ints = changetype<Ints>(0);
  recheck: Recheck = new Recheck();
}

/**
 * The answer of scoreVictims, for each row: rows are evicted by lower tier, then by
 * lower score, then in order. NEVER excludes a row. On entry all are 0.
 */
@unmanaged
export class VictimScores {
  tier: Longs = changetype<Longs>(0);
  score: Floats = changetype<Floats>(0);
  recheck: Recheck = new Recheck();
}

/**
 * The answer of scoreOptions, for each option: the best one has the lowest tiers,
 * compared in order, then the highest score, then the lowest position. Scores are
 * finite. On entry all are 0.
 */
@unmanaged
export class OptionScores {
  tier0: Longs = changetype<Longs>(0);
  tier1: Longs = changetype<Longs>(0);
  tier2: Longs = changetype<Longs>(0);
  tier3: Longs = changetype<Longs>(0);
  score: Floats = changetype<Floats>(0);
  recheck: Recheck = new Recheck();
}

/**
 * The answer of selectVictims: pick the rows of the first option in the order of
 * eviction, then next, then those of the second, and so on.
 */
@unmanaged
export class Selection {
  picks: Ints = changetype<Ints>(0);
  ends: Ints = changetype<Ints>(0);
  room: i32;
  used: i32;
  options: i32;
  closed: i32;
  recheck: Recheck = new Recheck();

  /** Adds a row to the current option. */
  // @ts-ignore: decorator
  @inline
  pick(row: i32): void {
    // Picks beyond the capacity are counted, so that the host reports the fault.
    if (this.used < this.room) this.picks[this.used] = row;
    this.used++;
  }

  /** Closes the current option. Call it once for every option. */
  // @ts-ignore: decorator
  @inline
  next(): void {
    if (this.closed < this.options) this.ends[this.closed] = this.used;
    this.closed++;
  }

  /** Discards all picks: the next ones are for the first option again. */
  restart(): void {
    this.used = 0;
    this.closed = 0;
  }
}

/**
 * The answer of preemptBindings: picks as in selectVictims, and tiers that rank the
 * options by their rows: lower ones first, compared in order. The host calls the hook
 * twice: for the victims of each option, and then, with these rows alone, for the best
 * option. On entry all tiers are 0.
 */
@unmanaged
export class BindingVictims {
  selection: Selection = new Selection();
  tier0: Longs = changetype<Longs>(0);
  tier1: Longs = changetype<Longs>(0);
  tier2: Longs = changetype<Longs>(0);
  tier3: Longs = changetype<Longs>(0);
}
