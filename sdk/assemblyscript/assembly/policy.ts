import { BindingVictims, Gaps, OptionScores, Selection, VictimScores } from "./answers";
import { Config, Setting } from "./settings";
import { Candidates, Options } from "./views";

/**
 * The base class of policies. A policy implements any of DeltaHook, VictimScorer,
 * VictimSelector, OptionScorer and BindingPreemptor; the rules named default replace
 * the missing ones.
 */
export abstract class Policy {
  /**
   * Describes the policy and the columns that it needs. The host calls it before and
   * after configure; the second result counts.
   */
  abstract info(info: Info): void;
}

/** A policy that operators can configure. */
export interface Configurable {
  /** Declares the configuration. The result must always be the same. */
  settings(): Setting[];
  /**
   * Receives the values, with defaults, once and before any hook. It calls fail to
   * reject them, for conditions that settings cannot express, such as two values that
   * exclude one another.
   */
  configure(config: Config): void;
}

/** Decides which candidates may be evicted for the preemptor at all. */
export interface DeltaHook {
  priorityDelta(question: Candidates, answer: Gaps): void;
}

/** Decides the order of eviction. */
export interface VictimScorer {
  scoreVictims(question: Candidates, answer: VictimScores): void;
}

/** Replaces VictimScorer for policies that select exact sets of victims. */
export interface VictimSelector {
  selectVictims(question: Candidates, answer: Selection): void;
}

/** Chooses among options. */
export interface OptionScorer {
  scoreOptions(question: Options, answer: OptionScores): void;
}

/**
 * Decides which bindings are evicted from which member cluster. Its input has the
 * optional columns USE, START, JOB and PLACE and no others, independent of info.
 */
export interface BindingPreemptor {
  preemptBindings(question: Candidates, answer: BindingVictims): void;
}

/** The description of a policy. */
export class Info {
  name: string = "";
  /** The policy's own version, for operators. */
  version: string = "1";
  /** Base priority gap if the configuration sets none. */
  delta: i32 = 10;
  /** Optional columns that its hooks read. */
  columns: i64 = 0;
  /** Call scoreVictims again after each pick. */
  adaptive: bool = false;
  /**
   * Victims are in order of ascending priority, before any other criterion: the host
   * then omits candidates that the policy would not reach.
   */
  ascending: bool = false;
  /** Redundant victims of selectVictims are evicted too, if the operator grants it. */
  keepRedundant: bool = false;
  /**
   * preemptBindings gets an elastic binding as two rows: the replicas above its
   * minimum, followed by the remaining ones, if any. If an answer lists the second,
   * the first is evicted as well.
   */
  elastic: bool = false;
  /**
   * If no single cluster can hold all missing replicas of a divided binding,
   * preemptBindings is called for victims on several clusters.
   */
  multiCluster: bool = false;
  /**
   * scoreOptions, which reads the starts, selects the option with the fewest overrun
   * budgets (if it reads them), then the lowest highest priority, then the lowest sum
   * of priorities, each raised by 2^31, then the fewest victims, then the latest
   * start. The host then evaluates only nodes that may be selected.
   */
  leastFirst: bool = false;
  /**
   * Within a priority, the allocation that started last is evicted first, of equals the
   * first in order; budgets are charged in reverse order; and of options that are equal
   * by leastFirst the first is selected. With ascending and leastFirst the host
   * computes the cost of an option itself and evaluates still fewer nodes.
   */
  youngestFirst: bool = false;
  /**
   * The tiers of scoreOptions depend on victimCount, highestPriority, prioritySum (each
   * priority raised by 2^31), budgetViolations, lostWork, start and the columns of
   * Columns.RELOCATION and Columns.LOOKAHEAD alone, and do not fall if one of these rises,
   * or if start falls. The host then omits topology domains of a gang that cannot have
   * lower tiers than the best one found.
   */
  monotone: bool = false;
}

/**
 * Optional columns, for info.columns. Request only the columns that the policy reads:
 * the host reuses answers while every requested column is unchanged.
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
  /** need and victims of options, with the requested columns of rows */
  export const VICTIM: i64 = 1 << 12;
  /** fitBefore, fitAfter, components, present of options */
  export const FIT: i64 = 1 << 13;
  /** answers depend on now */
  export const TIME: i64 = 1 << 14;
  /** shared.capacity alone */
  export const TOTALS: i64 = 1 << 15;
  /** rows.budget, budgets of shared, violations of options */
  export const BUDGET: i64 = 1 << 16;
  /**
   * relocation and displaced* of rows; stranded, displacing and displaced* of options: a
   * weight, but no reason to exclude a candidate, which would be offered again if its own
   * node changes, but not if others change
   */
  export const RELOCATION: i64 = 1 << 17;
  /**
   * expected* and cascadeDepth of options: scoreOptions is called about all options, with
   * zeros in them, and then about the few best, which the host has played
   */
  export const LOOKAHEAD: i64 = 1 << 18;
}

/** The policy of this module, and the error of the current call. */
export let registered: Policy | null = null;
export let failure: string | null = null;

/** Sets the policy of this module. Call it once, at the top level of the program. */
export function register(policy: Policy): void {
  registered = policy;
}

/**
 * Records why a hook cannot answer, or why configure rejects the configuration. The
 * hook must return after it.
 */
export function fail(why: string): void {
  failure = why;
}

/** Clears the error of the previous call. */
export function beginCall(): void {
  failure = null;
}
