// decay: lost work counts less the longer ago it started.
//
// Victims are ordered by the work that their eviction loses, which counts for half after
// each halfLife since its start. Allocations that started less than grace ago are protected
// from all but much higher priorities. Options are ordered by the highest priority among
// their victims, and then by fit less the work that is lost there.
import {
  Candidates, Columns, Config, Configurable, DeltaHook, Floats, Gaps, Info, Kind, NEVER, NamedNumber, OptionScorer,
  OptionScores, Options, Policy, Setting, VictimScorer, VictimScores, exp, fail, log, register,
} from "../../assembly";
export * from "../../assembly/exports";

const LN2: f64 = 0.6931471805599453;

class Decay extends Policy implements Configurable, DeltaHook, VictimScorer, OptionScorer {
  halfLife: i64 = 0;
  grace: i64 = 0;
  graceGap: i32 = 0;
  weight: f64 = 0;
  fewest: bool = false;
  fitBefore: bool = false;
  factors: NamedNumber[] = []; // NEVER for a protected namespace

  info(info: Info): void {
    info.name = "decay";
    info.columns = Columns.START | Columns.LOST_WORK | Columns.JOB | Columns.EVICTION | Columns.FIT | Columns.TIME;
  }

  settings(): Setting[] {
    return [
      new Setting("halfLife", Kind.DURATION, "age at which lost work counts for half").default("1h").between("1", "31536000").range("60", "86400"),
      new Setting("grace", Kind.DURATION, "age below which an eviction requires graceGap").default("0s").atLeast("0").choices(["0s", "1m", "10m"]),
      new Setting("graceGap", Kind.INTEGER, "priority gap required within the grace").default("50").between("0", "100"),
      new Setting("weight", Kind.NUMBER, "weight of lost hours against the fit of an option").default("0.1").atLeast("0").range("0.001", "10"),
      new Setting("fewest", Kind.BOOL, "prefer options with fewer victims before weighing them").default("true"),
      new Setting("fit", Kind.TEXT, "whether fit counts before or after the evictions").default("after").oneOf(["before", "after"]).choices(["before", "after"]),
      new Setting("spare", Kind.TEXTS, "namespaces from which nothing is evicted"),
      new Setting("factors", Kind.NUMBERS, "factor of lost hours by namespace, 1 if absent").atLeast("0"),
    ];
  }

  configure(config: Config): void {
    this.halfLife = config.duration("halfLife");
    this.grace = config.duration("grace");
    this.graceGap = <i32>config.integer("graceGap");
    this.weight = config.number("weight");
    this.fewest = config.bool("fewest");
    this.fitBefore = config.text("fit") == "before";
    this.factors = config.numbers("factors");
    const spared = config.texts("spare");
    for (let i = 0; i < spared.length; i++) {
      if (this.hasFactor(spared[i])) {
        fail("a namespace cannot both be spared and have a factor, or have two factors; remove one: " + spared[i]);
        return;
      }
      this.factors.push(new NamedNumber(spared[i], NEVER));
    }
  }

  private hasFactor(namespace: string): bool {
    for (let k = 0; k < this.factors.length; k++) {
      if (this.factors[k].name == namespace) return true;
    }
    return false;
  }

  /** The weight of a lost hour in a namespace. */
  private factorOf(question: Candidates, namespace: i32): f64 {
    for (let k = 0; k < this.factors.length; k++) {
      if (question.texts.equals(namespace, this.factors[k].name)) return this.factors[k].number;
    }
    return 1;
  }

  /**
   * Within its grace, an allocation requires a larger gap. If that alone protects it,
   * the host evaluates again after the grace.
   */
  priorityDelta(question: Candidates, answer: Gaps): void {
    const rows = question.rows, gaps = answer.gap;
    for (let row = 0; row < rows.length; row++) {
      const until = rows.start[row] + this.grace, gap = gaps[row];
      if (question.now >= until || gap >= this.graceGap) continue;
      const has = <i64>question.preemptor.priority - <i64>rows.priority[row];
      if (has >= <i64>gap && has < <i64>this.graceGap) answer.recheck.at(until);
      gaps[row] = this.graceGap;
    }
  }

  /** A group that has reached its limit of evictions is evicted last. */
  scoreVictims(question: Candidates, answer: VictimScores): void {
    const rows = question.rows, namespaces = rows.namespace, limits = rows.evictionLimit;
    let factor: f64 = 1;
    for (let row = 0; row < rows.length; row++) {
      if (row == 0 || namespaces[row] != namespaces[row - 1]) factor = this.factorOf(question, namespaces[row]);
      answer.tier[row] = limits[row] > 0 && rows.evictions[row] >= limits[row] ? 1 : 0;
      if (factor == NEVER) {
        answer.score[row] = NEVER;
        continue;
      }
      const age = question.now - rows.start[row];
      const seconds = <f64>rows.lostWork[row] / 1e9 * factor;
      const halfLives = <f64>max<i64>(age, 0) / <f64>this.halfLife;
      answer.score[row] = seconds * exp(-(halfLives * LN2));
    }
  }

  scoreOptions(question: Options, answer: OptionScores): void {
    const fit = this.fitBefore ? question.fitBefore : question.fitAfter;
    for (let i = 0; i < question.length; i++) {
      const victims = question.victimCount[i];
      answer.tier0[i] = victims == 0 ? i64.MIN_VALUE : <i64>question.highestPriority[i];
      answer.tier1[i] = this.fewest ? victims : 0;
      const hours = <f64>question.lostWork[i] / 3600e9;
      answer.score[i] = mean(question, fit, i) - this.weight * log(1.0 + hours);
    }
  }
}

/** The mean of the parts of the ranking of option i. */
function mean(question: Options, fit: Floats, i: i32): f64 {
  let sum = fit[i], n: f64 = 1;
  for (let k = 0; k < question.components.columns; k++) {
    if ((question.present[i] >> <u8>k) & 1) {
      sum += question.components.column(k)[i];
      n++;
    }
  }
  return sum / n;
}

register(new Decay());
