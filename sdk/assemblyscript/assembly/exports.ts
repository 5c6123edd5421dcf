/**
 * The functions that the host calls. The program of a policy exports them:
 *
 *   export * from "cede-policy/assembly/exports";
 */
import { BindingVictims, Gaps, OptionScores, Selection, VictimScores } from "./answers";
import { putDescription } from "./describe";
import * as frame from "./frame";
import { ANY, F64, I32, I64 } from "./frame";
import { candidates, config, optionsOf } from "./load";
import {
  BindingPreemptor, Configurable, DeltaHook, Info, OptionScorer, Policy, VictimScorer, VictimSelector, beginCall, fail,
  failure, registered,
} from "./policy";
import { Config, Setting } from "./settings";
import { Candidates, Floats, Ints, Longs, Options } from "./views";

const OK: i32 = 0;
const FAILED: i32 = -1;
const BAD: i32 = -2;
const UNSUPPORTED: i32 = -3;

// Created once: calls create no objects.
const question = new Candidates();
const optionQuestion = new Options();
const gaps = new Gaps();
const victimScores = new VictimScores();
const optionScores = new OptionScores();
const selection = new Selection();
const bindingVictims = new BindingVictims();

export function cede_abi_version(): i32 {
  return 1 << 16 | 4;
}

export function cede_alloc(size: u32): usize {
  return frame.alloc(size);
}

export function cede_describe(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 1) || policy === null) return BAD;
  const hooks = <i32>(policy instanceof DeltaHook) | (<i32>(policy instanceof VictimScorer) << 1) |
    (<i32>(policy instanceof VictimSelector) << 2) | (<i32>(policy instanceof OptionScorer) << 3) |
    (<i32>(policy instanceof BindingPreemptor) << 4);
  const info = new Info();
  policy.info(info);
  let settings: Setting[] | null = null;
  if (policy instanceof Configurable) settings = changetype<Configurable>(policy).settings();
  return putDescription(info, hooks, settings) ? OK : BAD;
}

export function cede_configure(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 2)) return BAD;
  if (!(policy instanceof Configurable)) return UNSUPPORTED;
  const values = new Config();
  if (!config(values)) return BAD;
  beginCall();
  changetype<Configurable>(policy).configure(values);
  return failure === null ? OK : putFailure();
}

export function cede_priority_delta(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 3)) return BAD;
  if (!(policy instanceof DeltaHook)) return UNSUPPORTED;
  gaps.gap = changetype<Ints>(frame.must(0x1011, I32, frame.rows));
  gaps.recheck.time = 0;
  if (!candidates(question)) return BAD;
  beginCall();
  changetype<DeltaHook>(policy).priorityDelta(question, gaps);
  return finish(gaps.recheck.time);
}

export function cede_score_victims(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 4)) return BAD;
  if (!(policy instanceof VictimScorer)) return UNSUPPORTED;
  victimScores.tier = changetype<Longs>(frame.must(0x1012, I64, frame.rows));
  victimScores.score = changetype<Floats>(frame.must(0x1013, F64, frame.rows));
  victimScores.recheck.time = 0;
  if (!candidates(question)) return BAD;
  beginCall();
  changetype<VictimScorer>(policy).scoreVictims(question, victimScores);
  return finish(victimScores.recheck.time);
}

export function cede_select_victims(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 5)) return BAD;
  if (!(policy instanceof VictimSelector)) return UNSUPPORTED;
  makeRoom(selection);
  if (!candidates(question)) return BAD;
  beginCall();
  changetype<VictimSelector>(policy).selectVictims(question, selection);
  return finishPicks(selection);
}

export function cede_preempt_bindings(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 7)) return BAD;
  if (!(policy instanceof BindingPreemptor)) return UNSUPPORTED;
  const n = frame.options, tiers = frame.must(0x1012, I64, 4 * <u64>n);
  bindingVictims.tier0 = changetype<Longs>(tiers);
  bindingVictims.tier1 = changetype<Longs>(tiers + 8 * n);
  bindingVictims.tier2 = changetype<Longs>(tiers + 16 * n);
  bindingVictims.tier3 = changetype<Longs>(tiers + 24 * n);
  makeRoom(bindingVictims.selection);
  if (!candidates(question)) return BAD;
  beginCall();
  changetype<BindingPreemptor>(policy).preemptBindings(question, bindingVictims);
  return finishPicks(bindingVictims.selection);
}

/** Sets the capacity of a selection to that of the frame. */
function makeRoom(s: Selection): void {
  s.picks = changetype<Ints>(frame.must(0x1014, I32, ANY));
  s.ends = changetype<Ints>(frame.must(0x1015, I32, frame.options));
  s.room = frame.count(0x1014);
  s.options = frame.options;
  s.restart();
  s.recheck.time = 0;
}

function finishPicks(s: Selection): i32 {
  if (failure === null && s.closed != s.options) fail("a hook that picks must call next once for every option");
  if (failure === null) frame.putCount(0x1014, s.used);
  return finish(s.recheck.time);
}

export function cede_score_options(at: usize, length: u32): i32 {
  const policy = registered;
  if (!frame.read(at, length, 6)) return BAD;
  if (!(policy instanceof OptionScorer)) return UNSUPPORTED;
  const n = frame.options, tiers = frame.must(0x1012, I64, 4 * <u64>n);
  optionScores.tier0 = changetype<Longs>(tiers);
  optionScores.tier1 = changetype<Longs>(tiers + 8 * n);
  optionScores.tier2 = changetype<Longs>(tiers + 16 * n);
  optionScores.tier3 = changetype<Longs>(tiers + 24 * n);
  optionScores.score = changetype<Floats>(frame.must(0x1013, F64, n));
  optionScores.recheck.time = 0;
  if (!optionsOf(optionQuestion)) return BAD;
  beginCall();
  changetype<OptionScorer>(policy).scoreOptions(optionQuestion, optionScores);
  return finish(optionScores.recheck.time);
}

function putFailure(): i32 {
  const why = failure;
  if (why !== null) frame.putError(why);
  return FAILED;
}

/** Returns the status of a hook. */
function finish(recheck: i64): i32 {
  if (failure !== null) return putFailure();
  const at = frame.must(0x1016, I64, 1);
  if (frame.bad) return BAD;
  store<i64>(at, recheck);
  return OK;
}
