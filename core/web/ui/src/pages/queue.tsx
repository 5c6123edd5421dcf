import type { JSX } from "preact";
import { get, list, type BrokerStatus, type Evaluation } from "../api";
import { duration } from "../format";
import { Figure, JobLink, Show, useTitle } from "../parts";
import { useLoaded } from "../store";
import { Table } from "../table";
import { ExpectedStart } from "./waiting";

export function Queue(): JSX.Element {
  useTitle("Queue");
  const broker = useLoaded((signal) => get<BrokerStatus>("/v1/operator/broker/status", {}, signal), ["Evaluation", "Operator"]);
  const evals = useLoaded(async (signal) => {
    const lists = await Promise.all(["blocked", "pending"].map((status) => list<Evaluation>("/v1/evaluations", { status, namespace: "*" }, 20_000, signal)));
    return lists.flat().sort((a, b) => b.Priority - a.Priority || a.CreateIndex - b.CreateIndex);
  }, ["Evaluation"]);
  const age = (e: Evaluation) => Date.now() / 1000 - e.CreateTime / 1e9;
  return (
    <>
      <h1>Queue</h1>
      <Show of={broker}>
        {(b) => (
          <dl class="figures">
            <Figure name="Ready" note={b.Paused ? "the broker is paused" : ""}>{b.Ready}</Figure>
            <Figure name="In progress">{b.Unacked}</Figure>
            <Figure name="Waiting for capacity">{b.Blocked}</Figure>
            <Figure name="Behind another of their job">{b.Pending}</Figure>
            <Figure name="Delayed">{b.Delayed}</Figure>
          </dl>
        )}
      </Show>
      <Show of={evals}>
        {(rows) => (
          <Table
            name="queue" caption="What waits, highest priority first" empty="Nothing waits." rows={rows} keyOf={(e) => e.ID}
            columns={[
              { name: "Priority", value: (e) => e.Priority, numeric: true },
              { name: "Job", value: (e) => e.JobID, cell: (e) => <JobLink namespace={e.Namespace} id={e.JobID} /> },
              { name: "Namespace", value: (e) => e.Namespace },
              { name: "Instances", value: instances, numeric: true },
              { name: "Waiting for", value: age, cell: (e) => duration(age(e)), numeric: true },
              { name: "Expected start", value: () => "", cell: (e) => <ExpectedStart of={e} /> },
              { name: "Why", value: why },
            ]}
          />
        )}
      </Show>
    </>
  );
}

function instances(e: Evaluation): number {
  return Object.values(e.QueuedAllocations ?? {}).reduce((a, b) => a + b, 0);
}

/** The reasons of the scheduler by group, or the status of the evaluation. */
export function why(e: Evaluation): string {
  const reasons = Object.entries(e.FailedTGAllocs ?? {}).map(([group, m]) => `${group}: ${m.Explanation}`);
  return reasons.join("; ") || e.StatusDescription || (e.Status === "pending" ? "not processed yet" : e.Status);
}
