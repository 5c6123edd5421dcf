import type { JSX } from "preact";
import { get, list, path, type Evaluation, type Job, type JobStub } from "../api";
import { since, time } from "../format";
import { Figure, JobLink, Link, Show, useTitle } from "../parts";
import { href } from "../router";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";
import { Allocs } from "./nodes";
import { why } from "./queue";
import { WouldBeEvicted } from "./waiting";

type State = "Running" | "Starting" | "Queued" | "Failed" | "Evicted";

function total(j: JobStub, state: State): number {
  return Object.values(j.JobSummary.Summary).reduce((sum, g) => sum + g[state], 0);
}

export function Jobs(): JSX.Element {
  useTitle("Jobs");
  const jobs = useLoaded((signal) => list<JobStub>("/v1/jobs", { namespace: "*" }, 50_000, signal), ["Job", "Evaluation", "Allocation"]);
  return (
    <>
      <h1>Jobs</h1>
      <Show of={jobs}>
        {(rows) => (
          <Table
            name="jobs" caption="Jobs" empty="No job is registered." rows={rows} keyOf={(j) => j.Namespace + "\n" + j.ID}
            columns={[
              { name: "Job", value: (j) => j.ID, cell: (j) => <JobLink namespace={j.Namespace} id={j.ID} /> },
              { name: "Namespace", value: (j) => j.Namespace },
              { name: "Type", value: (j) => j.Type },
              { name: "Priority", value: (j) => j.Priority, numeric: true },
              { name: "Status", value: (j) => j.Status },
              { name: "Running", value: (j) => total(j, "Running"), numeric: true },
              { name: "Starting", value: (j) => total(j, "Starting"), numeric: true },
              { name: "Waiting", value: (j) => total(j, "Queued"), numeric: true },
              { name: "Evicted", value: (j) => total(j, "Evicted"), cell: (j) => <EvictionsLink id={j.ID} n={total(j, "Evicted")} />, numeric: true },
              { name: "Registered", value: (j) => j.SubmitTime, cell: (j) => `${since(j.SubmitTime)} ago`, numeric: true },
            ]}
          />
        )}
      </Show>
    </>
  );
}

/** A number of evictions of a job, which leads to those that name the job. */
function EvictionsLink({ id, n }: { id: string; n: number }): JSX.Element {
  if (n === 0) return <>0</>;
  return <Link to={`${href("evictions")}?evictions.filter=${encodeURIComponent(id)}`}>{n}<span class="hidden"> evictions of {id}</span></Link>;
}

export function JobPage({ namespace, id }: { namespace: string; id: string }): JSX.Element {
  useTitle(id);
  const { cluster, evictions } = useStore();
  const job = useLoaded((signal) => get<Job>(path("job", id), { namespace }, signal), ["Job"], [namespace, id]);
  const evals = useLoaded((signal) => get<Evaluation[]>(path("job", id, "evaluations"), { namespace }, signal), ["Evaluation"], [namespace, id]);
  const blocked = evals.value?.find((e) => e.Status === "blocked");
  const allocs = [...(cluster?.allocs.values() ?? [])].filter((a) => a.group.namespace === namespace && a.group.job === id);
  const evicted = evictions.filter((e) => e.Victim.Namespace === namespace && e.Victim.JobID === id).length;
  return (
    <>
      <h1>Job {id}</h1>
      <Show of={job}>
        {(j) => (
          <dl class="figures">
            <Figure name="Status">{j.Stop ? "stopped" : j.Status}</Figure>
            <Figure name="Type">{j.Type}</Figure>
            <Figure name="Priority" note={j.PriorityClass ?? ""}>{j.Priority}</Figure>
            <Figure name="Namespace">{namespace}</Figure>
            <Figure name="Version">{j.Version}</Figure>
            <Figure name="Evictions"><EvictionsLink id={id} n={evicted} /></Figure>
            <Figure name="Registered">{time(j.SubmitTime ?? 0)}</Figure>
          </dl>
        )}
      </Show>
      {blocked && <WouldBeEvicted by={blocked} />}
      <Allocs name="allocs" caption="Allocations" rows={allocs} resources={cluster?.resources ?? []} />
      <Show of={evals}>
        {(rows) => (
          <Table
            name="evals" caption="Evaluations" empty="There are no evaluations." rows={[...rows].sort((a, b) => b.CreateIndex - a.CreateIndex)} keyOf={(e) => e.ID}
            columns={[
              { name: "Evaluation", value: (e) => e.ID, cell: (e) => <code title={e.ID}>{e.ID.slice(0, 8)}</code> },
              { name: "Triggered by", value: (e) => e.TriggeredBy },
              { name: "Status", value: (e) => e.Status },
              { name: "Created", value: (e) => e.CreateTime, cell: (e) => time(e.CreateTime) },
              { name: "Why", value: why },
            ]}
          />
        )}
      </Show>
    </>
  );
}
