/**
 * A preemption policy for cede in AssemblyScript, as a WebAssembly module.
 *
 *   import { Candidates, Columns, Info, Policy, VictimScorer, VictimScores, register } from "cede-policy/assembly";
 *   export * from "cede-policy/assembly/exports";
 *
 *   class LeastLost extends Policy implements VictimScorer {
 *     info(info: Info): void {
 *       info.name = "least-lost";
 *       info.columns = Columns.LOST_WORK;
 *     }
 *     scoreVictims(question: Candidates, answer: VictimScores): void {
 *       for (let row = 0; row < question.rows.length; row++) {
 *         answer.score[row] = <f64>question.rows.lostWork[row];
 *       }
 *     }
 *   }
 *   register(new LeastLost());
 *
 * README.md describes how to build and test a policy; sdk/ABI.md specifies the wire
 * format.
 *
 * Shapes. All input is in columns, which are addresses in the frame: they cost
 * nothing, are valid until the hook returns, and check no bounds. A column
 * of rows has rows.length elements, a column of options question.length, and a
 * table has a column per dimension or device request. Rows of option i are
 * firstRow[i] to firstRow[i+1], by priority ascending and in tie order within a
 * priority. Optional columns are absent, which isPresent reports, unless info.columns
 * requests them.
 *
 * Units. Resource amounts are f64 that hold whole numbers in the units of the
 * cluster (millicores, MiB, Mbit/s). Times are ns since 1970, durations ns.
 *
 * Determinism. Answers must have the same bits on every machine, natively and in
 * Wasm: compute with exp, log, pow and sqrt of this package and not with Math, keep no
 * state between calls that could change an answer, and never write NaN.
 *
 * Memory. The runtime "stub" never frees memory. The library creates no objects in
 * calls: hooks must not create any either, or the policy must be built with the
 * runtime "incremental".
 */
export {
  Bytes, Candidates, FITS_BY_EVICTING, FITS_ELSEWHERE, FITS_NOWHERE, Floats, IntTable, Ints, Longs, Options, Pairs, Preemptor, Rows,
  Shared, Table, isPresent,
} from "./views";
export { Texts } from "./texts";
export { BindingVictims, Gaps, NEVER, OptionScores, Recheck, Selection, VictimScores } from "./answers";
export { Config, Kind, NamedNumber, Setting } from "./settings";
export { BindingPreemptor, Columns, Configurable, DeltaHook, Info, OptionScorer, Policy, VictimScorer, VictimSelector, fail, register } from "./policy";
export { Level, log as say } from "./host";
export { exp, exp10, log, pow, sqrt } from "./fmath";
