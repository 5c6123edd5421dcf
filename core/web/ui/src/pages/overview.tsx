import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { get, list, type Evaluation, type PolicyStub, type SchedulerConfigurationResponse } from "../api";
import { Chart } from "../chart";
import { Bands } from "../colors";
import { amount, count, duration, number, percent } from "../format";
import { priorities } from "../nodemap";
import { Failure, Figure, JobLink, Link, Share, useTitle } from "../parts";
import { href } from "../router";
import { useLoaded, useStore, type Eviction } from "../store";
import { Table } from "../table";

const minutes = 60;

export function Overview(): JSX.Element {
  useTitle("Overview");
  const s = useStore();
  const cluster = s.cluster;
  const waiting = useLoaded((signal) => list<Evaluation>("/v1/evaluations", { status: "blocked", namespace: "*" }, 20_000, signal), ["Evaluation"]);
  const policies = useLoaded((signal) => get<PolicyStub[]>("/v1/policies", {}, signal), ["Policy", "Operator"]);
  const config = useLoaded((signal) => get<SchedulerConfigurationResponse>("/v1/operator/scheduler/configuration", {}, signal), ["Operator"]);
  const causes = useMemo(() => perMinute(s.evictions), [s.evictions[0], Math.floor(Date.now() / 60_000)]);
  if (!cluster) return <p class="empty">Loading…</p>;
  const ready = cluster.nodes.filter((n) => n.state === "ready").length;
  const last = s.evictions.filter((e) => e.time / 1e6 > Date.now() - 3_600_000);
  const active = config.value?.SchedulerConfig.Policy || "default";
  const trial = policies.value?.filter((p) => p.Until || p.Shadow) ?? [];
  return (
    <>
      <h1>Overview</h1>
      <dl class="figures">
        <Figure name="Nodes ready" note={`of ${cluster.nodes.length}`}>{ready}</Figure>
        <Figure name="Allocations">{number(cluster.allocs.size)}</Figure>
        <Figure name="Evaluations waiting">
          <Link to={href("queue")}>{waiting.value?.length ?? "…"}</Link>
        </Figure>
        <Figure name="Evictions, last hour" note={`${duration(last.reduce((sum, e) => sum + e.Victim.LostWork, 0) / 1e9)} of work lost`}>
          <Link to={href("evictions")}>{last.length}</Link>
        </Figure>
        <Figure name="Policy">
          <Link to={href("policies", active)}>{active}</Link>
          {trial.map((p) => (
            <small key={p.Name}>
              {p.Until && p.Trial && !p.Trial.End ? <Link to={href("trials", p.Name)}>trial of {p.Name}</Link> : <Link to={href("policies", p.Name)}>{p.Until ? "trial" : "shadow"} of {p.Name}</Link>}
            </small>
          ))}
        </Figure>
      </dl>
      <section>
        <h2>Capacity</h2>
        {cluster.resources.map((r, i) => {
          const whole = cluster.nodes.reduce((sum, n) => sum + (n.state === "down" ? 0 : n.capacity[i]!), 0);
          const part = cluster.nodes.reduce((sum, n) => sum + (n.state === "down" ? 0 : n.used[i]!), 0);
          return <Share key={r} part={part} whole={whole} label={`${r}: ${amount(r, part)} of ${amount(r, whole)} used (${percent(part, whole)})`} />;
        })}
        {cluster.resources.length === 0 && <p class="empty">No node has registered.</p>}
      </section>
      <section>
        <h2>Evictions per minute, by the job they were for</h2>
        <Chart
          times={causes.times} series={causes.series}
          description={`${count(causes.total, "eviction", "evictions")} in the last ${minutes} minutes${causes.series.length ? ": " + causes.series.map((c) => `${c.values.reduce((a, b) => a + b, 0)} ${c.label}`).join(", ") : ""}.`}
        />
      </section>
      <Failure error={waiting.error} />
      <Table
        name="waiting" caption="Waiting, by priority" empty="Nothing waits for capacity." keyOf={(r) => String(r.priority)}
        rows={byPriority(waiting.value ?? [])}
        columns={[
          { name: "Priority", value: (r) => r.priority, numeric: true },
          { name: "Evaluations", value: (r) => r.evals, numeric: true },
          { name: "Instances", value: (r) => r.instances, numeric: true },
          { name: "Longest wait", value: (r) => r.oldest, cell: (r) => duration(r.oldest), numeric: true },
        ]}
      />
      <Table
        name="running" caption="Running, by priority" empty="Nothing runs." keyOf={(r) => String(r.priority)}
        rows={running(cluster.allocs.values())}
        columns={[
          { name: "Priority", value: (r) => r.priority, cell: (r) => <><i class="swatch" style={{ background: new Bands(priorities(cluster)).color(r.priority) }} />{r.priority}</>, numeric: true },
          { name: "Allocations", value: (r) => r.count, numeric: true },
          { name: "Jobs", value: (r) => r.jobs.size, numeric: true },
          { name: "One of them", value: (r) => r.example.job, cell: (r) => <JobLink namespace={r.example.namespace} id={r.example.job} /> },
        ]}
      />
    </>
  );
}

function byPriority(evals: Evaluation[]) {
  const by = new Map<number, { priority: number; evals: number; instances: number; oldest: number }>();
  for (const e of evals) {
    const row = by.get(e.Priority) ?? { priority: e.Priority, evals: 0, instances: 0, oldest: 0 };
    row.evals++;
    row.instances += Object.values(e.QueuedAllocations ?? {}).reduce((a, b) => a + b, 0);
    row.oldest = Math.max(row.oldest, Date.now() / 1000 - e.CreateTime / 1e9);
    by.set(e.Priority, row);
  }
  return [...by.values()].sort((a, b) => b.priority - a.priority);
}

function running(allocs: Iterable<{ group: { priority: number; job: string; namespace: string } }>) {
  const by = new Map<number, { priority: number; count: number; jobs: Set<string>; example: { job: string; namespace: string } }>();
  for (const { group } of allocs) {
    const row = by.get(group.priority) ?? { priority: group.priority, count: 0, jobs: new Set<string>(), example: group };
    row.count++;
    row.jobs.add(JSON.stringify([group.namespace, group.job]));
    by.set(group.priority, row);
  }
  return [...by.values()].sort((a, b) => b.priority - a.priority);
}

const colors = ["#c2571a", "#2a7f9e", "#7a5ba6", "#5b8a3a", "#8a6d3b", "#a33b52"];

/** The evictions of the last hour in minutes, by the jobs with the most of them. */
function perMinute(evictions: Eviction[]) {
  const end = Math.floor(Date.now() / 60_000);
  const times = Array.from({ length: minutes }, (_, i) => (end - minutes + 1 + i) * 60);
  const by = new Map<string, number[]>();
  let total = 0;
  for (const e of evictions) {
    const at = Math.floor(e.time / 60e9) - (end - minutes + 1);
    if (at < 0 || at >= minutes) continue;
    const job = `for ${e.ByJobID}`;
    if (!by.has(job)) by.set(job, new Array<number>(minutes).fill(0));
    by.get(job)![at]!++;
    total++;
  }
  const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
  const jobs = [...by].sort((a, b) => sum(b[1]) - sum(a[1]));
  const others = jobs.splice(colors.length - 1);
  if (others.length > 0) jobs.push([`for ${count(others.length, "other job", "other jobs")}`, times.map((_, i) => others.reduce((n, [, values]) => n + values[i]!, 0))]);
  return { times, total, series: jobs.map(([label, values], i) => ({ label, values, color: colors[i]! })) };
}
