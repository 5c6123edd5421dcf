// What a waiting job can expect: when it starts, and what it would evict.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, path, type Decision, type DecisionVictim, type Evaluation, type JobForecast, type StartTime } from "../api";
import { duration } from "../format";
import { Failure, JobLink, Link, NodeLink, short, shortVersion } from "../parts";
import { href } from "../router";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";

/** The expected start of a waiting job. The server plays its state forward for it, so it is on request. */
export function ExpectedStart({ of: e }: { of: Evaluation }): JSX.Element {
  const [forecast, set] = useState<JobForecast>();
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState(false);
  if (e.Type === "binding") return <>–</>;
  const ask = async () => {
    setRunning(true);
    setError(undefined);
    try {
      set(await get<JobForecast>(path("job", e.JobID, "forecast"), { namespace: e.Namespace }));
    } catch (err) {
      setError(err as Error);
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <div role="status">{forecast && expected(forecast)}</div>
      <Failure error={error} />
      <button type="button" disabled={running} onClick={() => void ask()}>
        Forecast<span class="hidden"> the start of {e.JobID}</span>
      </button>
    </>
  );
}

/** A forecast in words: the median of the start, its interval, and the position in the queue. */
export function expected(f: JobForecast): string {
  const texts = [];
  if (f.Position) texts.push(`position ${f.Position} of ${f.QueueLength ?? f.Position}`);
  if (f.Reason) return [...texts, `no forecast: ${f.Reason}`].join("; ");
  texts.push(start(f, f.First));
  if ((f.Waiting ?? 0) > 1) texts.push(`the last instance ${start(f, f.All)}`);
  return texts.join("; ");
}

function start(f: JobForecast, s: StartTime | undefined): string {
  const horizon = duration((f.Horizon ?? 0) / 1e9);
  if (!s) return `not within ${horizon}`;
  const after = (at: number | undefined) => (at ? duration((at - f.Time) / 1e9) : `more than ${horizon}`);
  return `in ${after(s.Expected)} (${after(s.Low)} to ${after(s.High)})`;
}

interface Observed extends DecisionVictim {
  policy: string;
}

/** The victims of the decisions that were made for an evaluation and not carried out; nothing if there are none. */
export function WouldBeEvicted({ by: e }: { by: Evaluation }): JSX.Element | null {
  const s = useStore();
  const decisions = useLoaded((signal) => get<Decision[]>(path("evaluation", e.ID, "decisions"), { namespace: e.Namespace }, signal), [], [e.ID, e.ModifyIndex]);
  const rows = (decisions.value ?? []).filter((d) => d.Observed).flatMap((d) => (d.Victims ?? []).map((v): Observed => ({ ...v, policy: d.PolicyVersion })));
  if (rows.length === 0) return null;
  return (
    <Table
      name="observed" caption="Would be evicted: preemption is only observed" empty="" rows={rows} keyOf={(v) => v.AllocID ?? ""}
      columns={[
        { name: "Allocation", value: (v) => v.AllocID ?? "", cell: (v) => <code title={v.AllocID}>{short(v.AllocID ?? "")}</code> },
        { name: "Why", value: () => "", cell: (v) => v.AllocID && <Link to={href("evictions", v.AllocID)}>why<span class="hidden"> {v.JobID} {short(v.AllocID)} would be evicted</span></Link> },
        { name: "Job", value: (v) => v.JobID ?? "", cell: (v) => <JobLink namespace={v.Namespace ?? ""} id={v.JobID ?? ""} /> },
        { name: "Node", value: (v) => v.NodeID ?? "", cell: (v) => <NodeLink id={v.NodeID ?? ""} name={s.cluster?.node(v.NodeID ?? "")?.name ?? ""} /> },
        { name: "Priority", value: (v) => v.Priority, numeric: true },
        { name: "Lost work", value: (v) => v.LostWork / 1e9, cell: (v) => duration(v.LostWork / 1e9), numeric: true },
        { name: "Policy version", value: (v) => v.policy, cell: (v) => <code title={v.policy}>{shortVersion(v.policy)}</code> },
      ]}
    />
  );
}
