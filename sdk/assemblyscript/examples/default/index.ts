// default: the built-in rules of this name (sdk/rules), in
// AssemblyScript.
//
// The lowest priority is evicted first; within a priority the allocation nearest to the
// remaining need, measured again after each pick; of equals the one that can best run
// elsewhere, then the first row. Among options: the lowest highest victim priority, then
// the fewest victims, the lowest sum of priorities, the victims that can best run
// elsewhere, and the best fit without the victims.
//
// Of bindings on a member cluster the lowest priority is evicted first, then the one that
// started last, then the last name. Among clusters: the fewest
// victims, the lowest highest priority, the lowest sum of priorities.
import {
  BindingPreemptor, BindingVictims, Candidates, Columns, Info, OptionScorer, OptionScores, Options, Policy, Selection,
  VictimSelector, isPresent, register,
} from "../../assembly";
export * from "../../assembly/exports";
import { selectAny } from "./any";
import { preempt } from "./bindings";
import { selectFew } from "./few";

class Default extends Policy implements VictimSelector, OptionScorer, BindingPreemptor {
  info(info: Info): void {
    info.name = "default";
    info.version = "2";
    info.ascending = true;
    info.monotone = true;
    info.columns = Columns.USE | Columns.MUST_LEAVE | Columns.DEVICE | Columns.FIT | Columns.RELOCATION;
  }

  selectVictims(question: Candidates, answer: Selection): void {
    if (!selectFew(question, answer)) selectAny(question, answer);
  }

  preemptBindings(question: Candidates, answer: BindingVictims): void {
    preempt(question, answer);
  }

  scoreOptions(question: Options, answer: OptionScores): void {
    for (let i = 0; i < question.length; i++) {
      const victims = question.victimCount[i];
      // No eviction beats any.
      answer.tier0[i] = victims == 0 ? i64.MIN_VALUE : <i64>question.highestPriority[i];
      answer.tier1[i] = victims;
      answer.tier2[i] = question.prioritySum[i];
      answer.tier3[i] = relocation(question, i);
      answer.score[i] = mean(question, i);
    }
  }
}

/**
 * The tier of option i's victims: how many fit nowhere else, then the highest priority that
 * the others would evict, then how many would evict.
 */
function relocation(question: Options, i: i32): i64 {
  if (!isPresent(question.stranded)) return 0;
  const most = (1 << 14) - 1;
  const stranded = <i64>min(question.stranded[i], most), displacing = <i64>min(question.displacing[i], most);
  const priority = displacing > 0 ? <i64>question.displacedPriority[i] - <i64>i32.MIN_VALUE + 1 : 0;
  return (stranded << 48) | (priority << 14) | displacing;
}

/** The mean of the parts of the ranking of option i. */
function mean(question: Options, i: i32): f64 {
  let sum = question.fitAfter[i], n: f64 = 1;
  for (let k = 0; k < question.components.columns; k++) {
    if ((question.present[i] >> <u8>k) & 1) {
      sum += question.components.column(k)[i];
      n++;
    }
  }
  return sum / n;
}

register(new Default());
