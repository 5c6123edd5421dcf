import { BindingVictims, Gaps, OptionScores, Selection, VictimScores } from "./answers";
import { Config, Setting } from "./settings";
import { Candidates, Options } from "./views";

/**
 * What every policy extends. It implements any of DeltaHook, VictimScorer,
 * VictimSelector, OptionScorer and BindingPreemptor; what it lacks, the rules
 * named default do.
 */
export abstract class Policy {
  /**
   * Says what the policy is and needs. It is asked before configure and after
   * it, and the latter counts.
   */
  abstract info(info: Info): void;
}

/** Policies that operators can configure. */
export interface Configurable {
  /** Declares the configuration: the same always. */
  settings(): Setting[];
  /**
   * Takes the values, every setting that has a default among them, once, before
   * the hooks. With fail it rejects them: what settings cannot say belongs here,
   * such as two values that exclude one another.
   */
  configure(config: Config): void;
}

/** Decides which candidates may be evicted for the preemptor at all. */
export interface DeltaHook {
  priorityDelta(question: Candidates, answer: Gaps): void;
}

/** Decides whom to evict first. */
export interface VictimScorer {
  scoreVictims(question: Candidates, answer: VictimScores): void;
}

/** Replaces VictimScorer for policies that pick exactly. */
export interface VictimSelector {
  selectVictims(question: Candidates, answer: Selection): void;
}

/** Chooses among options. */
export interface OptionScorer {
  scoreOptions(question: Options, answer: OptionScores): void;
}

/**
 * Decides which bindings leave which member cluster. Of the optional columns those
 * of USE, START, JOB and PLACE come, whatever info asks for, and no others.
 */
export interface BindingPreemptor {
  preemptBindings(question: Candidates, answer: BindingVictims): void;
}

/** What a policy says of itself. */
export class Info {
  name: string = "";
  /** The policy's own version, for people. */
  version: string = "1";
  /** Base priority gap where the operator sets none. */
  delta: i32 = 10;
  /** Optional columns that its hooks read. */
  columns: i64 = 0;
  /** Ask scoreVictims again after each pick. */
  adaptive: bool = false;
  /**
   * Victims go by ascending priority, whatever else counts: the host then shows
   * no candidate that the policy would not reach.
   */
  ascending: bool = false;
  /** The lists of selectVictims stand whole, where the operator grants it. */
  keepRedundant: bool = false;
  /**
   * preemptBindings is shown an elastic binding in two rows: the replicas above its
   * minimum, and right behind it those that are left, where any are. Who lists the
   * second has the first leave as well.
   */
  elastic: bool = false;
  /**
   * Where no single cluster can be made to hold all that a divided binding misses,
   * preemptBindings is asked who would leave several of them.
   */
  multiCluster: bool = false;
  /**
   * scoreOptions, which reads the starts, takes the option with the fewest budgets
   * overrun (where it reads them); of equals the lowest highest priority, then the
   * lowest sum of priorities, each raised by 2^31, then the fewest victims, then the
   * latest start. The host then asks about nodes that may win, and no others.
   */
  leastFirst: bool = false;
  /**
   * Of one priority who started last goes first, of equals the first in order; budgets
   * are charged the other way round; and of options that are equal by leastFirst the
   * first is taken. With ascending and leastFirst the host knows what an option costs,
   * and asks about still fewer nodes.
   */
  youngestFirst: bool = false;
}

/**
 * Optional columns, for info.columns. Ask for what the policy reads and no more:
 * answers are reused while every column asked for is unchanged.
 */
export namespace Columns {
  /** rows.use */
  export const USE: i64 = 1;
  /** rows.start */
  export const START: i64 = 1 << 1;
  /** rows.lostWork, and that of options */
  export const LOST_WORK: i64 = 1 << 2;
  /** rows.namespace, job, group */
  export const JOB: i64 = 1 << 3;
  /** rows.evictions, evictionLimit */
  export const EVICTION: i64 = 1 << 4;
  /** rows.mustLeave, and that of options */
  export const MUST_LEAVE: i64 = 1 << 5;
  /** rows.devices, and deviceNeed and deviceGroup of options */
  export const DEVICE: i64 = 1 << 6;
  /** capacity, reserved, free, own of candidates */
  export const CAPACITY: i64 = 1 << 7;
  /** place of options */
  export const PLACE: i64 = 1 << 8;
  /** labels of the preemptor and of rows */
  export const LABEL: i64 = 1 << 9;
  /** annotations of the preemptor and of rows */
  export const ANNOTATION: i64 = 1 << 10;
  /** shared */
  export const SHARED: i64 = 1 << 11;
  /** need and victims of options, with the row columns that are asked for */
  export const VICTIM: i64 = 1 << 12;
  /** fitBefore, fitAfter, components, present of options */
  export const FIT: i64 = 1 << 13;
  /** answers depend on now */
  export const TIME: i64 = 1 << 14;
  /** shared.capacity alone */
  export const TOTALS: i64 = 1 << 15;
  /** rows.budget, budgets of shared, violations of options */
  export const BUDGET: i64 = 1 << 16;
}

/** The policy of this module, and why it could not answer. */
export let registered: Policy | null = null;
export let failure: string | null = null;

/** Makes a policy that of this module. Call it once, at the top of the program. */
export function register(policy: Policy): void {
  registered = policy;
}

/**
 * Says that a hook could not answer, or that configure rejects what the operator
 * wrote, and why. The hook returns then.
 */
export function fail(why: string): void {
  failure = why;
}

/** Forgets what fail said. */
export function beginCall(): void {
  failure = null;
}
