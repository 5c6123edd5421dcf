// default: the built-in rules of this name (sdk/rules), in
// AssemblyScript.
//
// The lowest priority is evicted first; within a priority the allocation nearest to the
// remaining need, measured again after each pick; equals in the order of the
// rows. Among options: the lowest highest victim priority, then the fewest
// victims, the lowest sum of priorities, and the best fit without the victims.
//
// Of bindings on a member cluster the lowest priority is evicted first, then the one that
// started last, then the last name. Among clusters: the fewest
// victims, the lowest highest priority, the lowest sum of priorities.
import {
  BindingPreemptor, BindingVictims, Candidates, Columns, Info, OptionScorer, OptionScores, Options, Policy, Selection,
  VictimSelector, register,
} from "../../assembly";
export * from "../../assembly/exports";
import { selectAny } from "./any";
import { preempt } from "./bindings";
import { selectFew } from "./few";

class Default extends Policy implements VictimSelector, OptionScorer, BindingPreemptor {
  info(info: Info): void {
    info.name = "default";
    info.ascending = true;
    info.monotone = true;
    info.columns = Columns.USE | Columns.MUST_LEAVE | Columns.DEVICE | Columns.FIT;
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
      answer.score[i] = mean(question, i);
    }
  }
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
