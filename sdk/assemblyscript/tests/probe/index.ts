// probe: folds its whole input into one number and derives its answers from
// it, as sdk/policytest/probe does, so that golden frames show
// whether this library reads all of them. It also exports the arithmetic.
import {
  BindingPreemptor, BindingVictims, Candidates, Config, Configurable, DeltaHook, Gaps, Info, Kind, OptionScorer, OptionScores,
  Options, Policy, Preemptor, Selection, Setting, Texts, VictimScorer, VictimScores, VictimSelector, exp, exp10, fail, log, pow,
  register, sqrt,
} from "../../assembly";
export * from "../../assembly/exports";
import { BASIS, add, foldCandidates, foldOptions, number, part, start, sum, words } from "./fold";

class Probe extends Policy implements Configurable, DeltaHook, VictimScorer, VictimSelector, OptionScorer, BindingPreemptor {
  seed: u64 = 0; // what the configuration folds to

  info(info: Info): void {
    info.name = "probe";
    info.version = "1.0-größe";
    info.delta = -7;
    info.columns = 0x7ffff;
    info.adaptive = true;
    info.ascending = true;
    info.keepRedundant = true;
    info.elastic = true;
    info.multiCluster = true;
    info.leastFirst = true;
    info.youngestFirst = true;
    info.monotone = true;
  }

  settings(): Setting[] {
    return [
      new Setting("on", Kind.BOOL, 'says "yes" or \\no').default("true"),
      new Setting("count", Kind.INTEGER, "größe,\n\tin 日本 🦀").default("3").between("-1", "9"),
      new Setting("weight", Kind.NUMBER, "").default("0.5").atLeast("0.5"),
      new Setting("span", Kind.DURATION, "").default("10m"),
      new Setting("order", Kind.TEXT, "").required().oneOf(["newest", "größte", "reject"]),
      new Setting("spare", Kind.TEXTS, ""),
      new Setting("shares", Kind.NUMBERS, ""),
    ];
  }

  configure(c: Config): void {
    start(BASIS);
    if (c.bool("on")) add(1);
    add(c.integer("count"));
    number(c.number("weight"));
    add(c.duration("span"));
    words(c.text("order"));
    const spare = c.texts("spare"), shares = c.numbers("shares");
    add(spare.length);
    for (let k = 0; k < spare.length; k++) words(spare[k]);
    add(shares.length);
    for (let k = 0; k < shares.length; k++) {
      words(shares[k].name);
      number(shares[k].number);
    }
    if (c.text("order") == "reject") {
      fail("rejected: " + spare[0]);
      return;
    }
    this.seed = sum;
  }

  priorityDelta(q: Candidates, out: Gaps): void {
    foldCandidates(this.seed, q);
    for (let row = 0; row < q.rows.length; row++) out.gap[row] = out.gap[row] + <i32>(part(row) >> 58);
    out.recheck.at(<i64>(sum >> 2));
    out.recheck.at(<i64>(sum >> 2) + 1);
    check(q.preemptor, q.texts);
  }

  scoreVictims(q: Candidates, out: VictimScores): void {
    foldCandidates(this.seed, q);
    for (let row = 0; row < q.rows.length; row++) {
      out.tier[row] = <i64>part(row);
      out.score[row] = <f64>(part(row) >> 11);
    }
    check(q.preemptor, q.texts);
  }

  selectVictims(q: Candidates, out: Selection): void {
    this.pick(q, out);
    check(q.preemptor, q.texts);
  }

  preemptBindings(q: Candidates, out: BindingVictims): void {
    this.pick(q, out.selection);
    for (let i = 0; i < q.length; i++) {
      out.tier0[i] = <i64>part(4 * i);
      out.tier1[i] = <i64>part(4 * i + 1);
      out.tier2[i] = <i64>part(4 * i + 2);
      out.tier3[i] = <i64>part(4 * i + 3);
    }
    check(q.preemptor, q.texts);
  }

  private pick(q: Candidates, out: Selection): void {
    foldCandidates(this.seed, q);
    const twice = q.texts.equals(q.preemptor.job, "twice");
    for (let i = 0; i < q.length; i++) {
      for (let row = q.firstRow[i + 1] - 1; row >= q.firstRow[i]; row--) {
        if (twice) out.pick(row);
        if (twice || part(row) >> 63) out.pick(row);
      }
      out.next();
    }
    out.recheck.at(<i64>(sum >> 1));
  }

  scoreOptions(q: Options, out: OptionScores): void {
    foldOptions(this.seed, q);
    for (let i = 0; i < q.length; i++) {
      out.tier0[i] = <i64>part(4 * i);
      out.tier1[i] = <i64>part(4 * i + 1);
      out.tier2[i] = <i64>part(4 * i + 2);
      out.tier3[i] = <i64>part(4 * i + 3);
      out.score[i] = -<f64>(part(i) >> 11);
    }
    check(q.preemptor, q.texts);
  }
}

/** Fails if the preemptor's job requests it. */
function check(p: Preemptor, t: Texts): void {
  if (t.equals(p.job, "fail")) fail("no: " + t.get(p.namespace));
}

register(new Probe());

export function test_exp(x: f64): f64 {
  return exp(x);
}

export function test_exp10(x: f64): f64 {
  return exp10(x);
}

export function test_log(x: f64): f64 {
  return log(x);
}

export function test_pow(x: f64, y: f64): f64 {
  return pow(x, y);
}

export function test_sqrt(x: f64): f64 {
  return sqrt(x);
}
