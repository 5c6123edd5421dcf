import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { get, path, type PolicyComparison, type PolicyMeasure, type PolicyStatus, type PolicyStub, type PolicyTrialCourse } from "../api";
import { Chart } from "../chart";
import { count, duration, number, time } from "../format";
import { Action, Failure, Figure, Link, shortVersion, Show, useTitle, write } from "../parts";
import { href } from "../router";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";

const topics = ["Policy", "Operator"];

/** The trials with blocks: one for each policy, in progress or the last one. */
export function Trials(): JSX.Element {
  useTitle("Trials");
  const s = useStore();
  const policies = useLoaded((signal) => get<PolicyStub[]>("/v1/policies", {}, signal), topics);
  const [started, setStarted] = useState<{ name: string; trial: PolicyComparison | undefined }>(); // outlives the form, which then has a policy less
  return (
    <>
      <h1>Trials</h1>
      <p>
        In a trial, the active version of a policy and a candidate decide in alternate blocks of time, in random order. The interval of each
        difference holds after every block, so that you may look at it at any time.
      </p>
      <Show of={policies}>
        {(rows) => (
          <>
            <Table
              name="trials" caption="Trials" empty="No policy had a trial with blocks." rows={rows.filter((p) => p.Trial)} keyOf={(p) => p.Name}
              columns={[
                { name: "Policy", value: (p) => p.Name, cell: (p) => <Link to={href("trials", p.Name)}>{p.Name}</Link> },
                { name: "Candidate", value: (p) => p.Trial!.Candidate, cell: (p) => <code title={p.Trial!.Candidate}>{shortVersion(p.Trial!.Candidate)}</code> },
                { name: "Verdict", value: (p) => verdict(p.Trial!) },
                { name: "Pairs of blocks", value: (p) => pairs(p.Trial!), numeric: true },
                { name: "Ends", value: (p) => p.Trial!.End?.Time ?? p.Trial!.Until, cell: (p) => time(p.Trial!.End?.Time ?? p.Trial!.Until) },
              ]}
            />
            {started && (
              <p role="status">
                The trial has started: <Link to={href("trials", started.name)}>trial of {started.name}</Link>.{started.trial?.Warning ? ` ${sentence(started.trial.Warning)}` : ""}
              </p>
            )}
            {s.may("policy") && (
              <Start policies={rows.filter((p) => p.Active && p.Versions > 1 && !p.Until)} done={(name, trial) => (setStarted({ name, trial }), policies.reload())} />
            )}
          </>
        )}
      </Show>
    </>
  );
}

const pairs = (t: PolicyComparison) => Math.floor(t.Blocks / 2);

/** The state of a trial in words. */
export function verdict(t: PolicyComparison): string {
  if (t.End) return t.End.Ended === "promoted" ? "promoted: the candidate stays active" : `${t.End.Ended}: the candidate was not promoted`;
  if (pairs(t) < t.LeastPairs) return `none yet: ${pairs(t)} of at least ${count(t.LeastPairs, "pair", "pairs")} of blocks`;
  return "none yet: no condition holds";
}

export function TrialPage({ name }: { name: string }): JSX.Element {
  useTitle("Trial of " + name);
  const s = useStore();
  const [metric, setMetric] = useState("victims");
  const course = useLoaded((signal) => get<PolicyTrialCourse>(path("policy", name, "trial"), { metric }, signal), topics, [name, metric]);
  return (
    <>
      <h1>Trial of {name}</h1>
      <Show of={course}>
        {({ Trial: t, ...c }) => (
          <>
            {t.Warning && !t.End && <p class="failure" role="alert">{sentence(t.Warning)}</p>}
            <dl class="figures">
              <Figure name="Verdict">{verdict(t)}</Figure>
              <Figure name="Pairs of blocks" note={`of ${t.MostPairs}, each block ${duration(t.Block / 1e9)}`}>{pairs(t)}</Figure>
              <Figure name="Candidate"><code title={t.Candidate}>{shortVersion(t.Candidate)}</code></Figure>
              <Figure name="Active before"><code title={t.Baseline}>{shortVersion(t.Baseline)}</code></Figure>
              <Figure name="Started" note={t.Actor ? `by ${t.Actor}` : ""}>{time(t.Start)}</Figure>
              {t.End ? (
                <Figure name="Ended" note={t.End.Actor ? `by ${t.End.Actor}` : ""}>{time(t.End.Time)}</Figure>
              ) : (
                <Figure name="Ends" note={t.BlockEnd ? `this block: ${time(t.BlockEnd)}` : ""}>{time(t.Until)}</Figure>
              )}
            </dl>
            {t.End?.Reason && <p>The condition held: {t.End.Reason}</p>}
            {!t.End && s.may("policy") && (
              <div class="bar">
                <Action
                  label="Stop the trial" done={course.reload} run={() => write("PUT", path("policy", name, "rollback"), {})}
                  consequence={`The trial ends without a verdict, and version ${shortVersion(t.Baseline)} decides on every server.`}
                />
              </div>
            )}
            <section>
              <h2>Conditions</h2>
              <dl class="conditions">
                <dt>The active version stays as soon as</dt>
                <dd>{t.StopIf ? <code>{t.StopIf}</code> : "never"}</dd>
                <dt>The candidate is promoted as soon as</dt>
                <dd>{t.PromoteIf ? <code>{t.PromoteIf}</code> : "never"}</dd>
              </dl>
            </section>
            <section>
              <div class="bar">
                <h2 id="sequence">Confidence sequence</h2>
                <label>
                  <span class="hidden">Metric of the confidence sequence</span>
                  <select value={metric} onChange={(e) => setMetric(e.currentTarget.value)}>
                    {t.Measures.map((m) => <option key={m.Name}>{m.Name}</option>)}
                  </select>
                </label>
              </div>
              <Sequence course={c} />
            </section>
            <Table
              name="measures" caption="Metrics, mean of a block" empty="No pair of blocks is complete." rows={pairs(t) > 0 ? t.Measures : []} keyOf={(m) => m.Name}
              columns={[
                { name: "Metric", value: (m) => m.Name },
                { name: "Active", value: (m) => m.Baseline, cell: (m) => number(m.Baseline), numeric: true },
                { name: "Candidate", value: (m) => m.Candidate, cell: (m) => number(m.Candidate), numeric: true },
                { name: "Difference", value: (m) => m.Difference, cell: (m) => signed(m.Difference), numeric: true },
                { name: "Interval", value: interval },
                { name: "Reading", value: reading },
              ]}
            />
            <p class="note">
              A difference is candidate minus active, without the part that the requests of new work in each block explain: it need not be the
              difference of the two means. wastedWork.cpu is in millicore-seconds, wastedWork.memory in MiB-seconds, and queueDelay.mean in seconds.
            </p>
            <Table
              name="blocks" caption={`Complete blocks: ${c.Metric}`} empty="No block is complete." rows={c.Blocks} keyOf={(b) => String(b.Start)}
              columns={[
                { name: "Start", value: (b) => b.Start, cell: (b) => time(b.Start) },
                { name: "Decided", value: (b) => (b.Candidate ? "candidate" : "active") },
                { name: c.Metric, value: (b) => b.Value, cell: (b) => number(b.Value), numeric: true },
              ]}
            />
          </>
        )}
      </Show>
    </>
  );
}

const signed = (n: number) => (n > 0 ? "+" : "") + number(n);
const interval = (m: { Low?: number; High?: number }) => (m.Low === undefined || m.High === undefined ? "too few blocks" : `${signed(m.Low)} to ${signed(m.High)}`);
const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + ".";

/** More of these is better; less of all others. */
const gains = new Set(["placed"]);

function reading(m: PolicyMeasure): string {
  if (m.Low === undefined || m.High === undefined) return "not known yet";
  if (m.Low > 0) return gains.has(m.Name) ? "the candidate is better" : "the candidate is worse";
  if (m.High < 0) return gains.has(m.Name) ? "the candidate is worse" : "the candidate is better";
  return "no difference is shown";
}

/** The interval of the difference after each number of pairs. */
function Sequence({ course }: { course: Omit<PolicyTrialCourse, "Trial"> }): JSX.Element {
  const { times, series } = useMemo(() => {
    const points = course.Points;
    return {
      times: points.map((p) => p.Time / 1e9),
      series: [
        { label: "low", color: "#2a7f9e", values: points.map((p) => p.Low ?? null) },
        { label: "high", color: "#2a7f9e", values: points.map((p) => p.High ?? null) },
        { label: "mean difference", color: "#c2571a", values: points.map((p) => p.Difference) },
      ],
    };
  }, [course]);
  const last = course.Points.at(-1);
  if (!last) return <p class="empty">No pair of blocks is complete.</p>;
  return (
    <>
      <Chart
        interval times={times} series={series}
        description={`${course.Metric}, candidate minus active: ${signed(last.Difference)} after ${count(last.Pairs, "pair", "pairs")} of blocks, with the interval ${interval(last)}. An interval without 0 is a verdict.`}
      />
      <Table
        name="points" caption={`Interval after each pair: ${course.Metric}`} empty="No pair of blocks is complete." rows={course.Points} keyOf={(p) => String(p.Pairs)}
        columns={[
          { name: "Pairs of blocks", value: (p) => p.Pairs, numeric: true },
          { name: "Time", value: (p) => p.Time, cell: (p) => time(p.Time) },
          { name: "Difference", value: (p) => p.Difference, cell: (p) => signed(p.Difference), numeric: true },
          { name: "Interval", value: interval },
        ]}
      />
    </>
  );
}

const stopIf = "worse(victims, candidate, active) || worse('wastedWork.cpu', candidate, active) || worse('queueDelay.mean', candidate, active)";
const promoteIf = "better('wastedWork.cpu', candidate, active)";

type Started = (policy: string, trial: PolicyComparison | undefined) => void;

/** Starts a trial of a loaded version. */
function Start({ policies, done }: { policies: PolicyStub[]; done: Started }): JSX.Element {
  const [name, setName] = useState("");
  const chosen = policies.find((p) => p.Name === name) ?? policies[0];
  if (!chosen) return <p class="empty">A trial requires a policy with an active version, another loaded version, and no trial in progress.</p>;
  return (
    <section>
      <h2>Start a trial</h2>
      <label class="field">
        Policy
        <select value={chosen.Name} onChange={(e) => setName(e.currentTarget.value)}>
          {policies.map((p) => <option key={p.Name}>{p.Name}</option>)}
        </select>
      </label>
      <StartForm key={chosen.Name} name={chosen.Name} active={chosen.Active ?? ""} done={done} />
    </section>
  );
}

function StartForm({ name, active, done }: { name: string; active: string; done: Started }): JSX.Element {
  const status = useLoaded((signal) => get<PolicyStatus>(path("policy", name), {}, signal), topics, [name]);
  const [form, set] = useState({ version: "", hours: 72, minutes: 30, stopIf, promoteIf });
  const [error, setError] = useState<Error>();
  const versions = (status.value?.Loaded ?? []).filter((v) => v.ID !== active);
  const version = versions.find((v) => v.ID === form.version)?.ID ?? versions[0]?.ID ?? "";
  const most = Math.floor((form.hours * 60) / form.minutes / 2);
  const submit = async (e: Event) => {
    e.preventDefault();
    setError(undefined);
    try {
      const body = { Version: version, For: form.hours * 3600e9, Block: form.minutes * 60e9, StopIf: form.stopIf, PromoteIf: form.promoteIf };
      const answer = (await (await write("PUT", path("policy", name, "trial"), body)).json()) as PolicyStatus;
      done(name, answer.Trial);
    } catch (err) {
      setError(err as Error);
    }
  };
  return (
    <form class="fields" onSubmit={(e) => void submit(e)}>
      <label class="field">
        Candidate
        <select value={version} onChange={(e) => set({ ...form, version: e.currentTarget.value })}>
          {versions.map((v) => <option key={v.ID} value={v.ID}>{shortVersion(v.ID)} ({v.Kind})</option>)}
        </select>
      </label>
      <label class="field">
        For at most, in hours
        <input type="number" min={0.1} max={720} step="any" required value={form.hours} onInput={(e) => set({ ...form, hours: e.currentTarget.valueAsNumber })} />
      </label>
      <label class="field">
        Length of a block, in minutes
        <input type="number" min={1} max={1440} step="any" required value={form.minutes} onInput={(e) => set({ ...form, minutes: e.currentTarget.valueAsNumber })} />
      </label>
      <label class="field">
        Keep the active version as soon as
        <input class="wide" value={form.stopIf} onInput={(e) => set({ ...form, stopIf: e.currentTarget.value })} />
      </label>
      <label class="field">
        Promote the candidate as soon as
        <input class="wide" value={form.promoteIf} onInput={(e) => set({ ...form, promoteIf: e.currentTarget.value })} />
      </label>
      <p role="status">
        {Number.isFinite(most) ? `This time contains ${count(most, "pair", "pairs")} of blocks.${most < 8 ? " No verdict is possible with fewer than 8." : ""}` : ""}
      </p>
      <Failure error={error} />
      <div class="bar">
        <button type="submit" class="primary" disabled={version === ""}>Start the trial</button>
      </div>
    </form>
  );
}
