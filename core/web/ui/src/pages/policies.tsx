import type { JSX } from "preact";
import { get, path, type PolicyStatus, type PolicyStub } from "../api";
import { count, duration, number, percent, time } from "../format";
import { Action, Figure, JobLink, Link, short, shortVersion, Show, useTitle, write } from "../parts";
import { href } from "../router";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";

export function Policies(): JSX.Element {
  useTitle("Policies");
  const policies = useLoaded((signal) => get<PolicyStub[]>("/v1/policies", {}, signal), ["Policy", "Operator"]);
  return (
    <>
      <h1>Policies</h1>
      <Show of={policies}>
        {(rows) => (
          <Table
            name="policies" caption="Policies" empty="There are no policies." rows={rows} keyOf={(p) => p.Name}
            columns={[
              { name: "Policy", value: (p) => p.Name, cell: (p) => <Link to={href("policies", p.Name)}>{p.Name}</Link> },
              { name: "Origin", value: (p) => (p.Builtin ? "built in" : "loaded") },
              { name: "Versions", value: (p) => p.Versions, numeric: true },
              { name: "Active", value: (p) => p.Active ?? "", cell: (p) => <code>{shortVersion(p.Active ?? "")}</code> },
              { name: "In shadow", value: (p) => p.Shadow ?? "", cell: (p) => <code>{shortVersion(p.Shadow ?? "")}</code> },
              { name: "Trial until", value: (p) => p.Until ?? 0, cell: (p) => (p.Until ? time(p.Until) : "–") },
              { name: "Disabled", value: (p) => Object.keys(p.Tripped ?? {}).length, numeric: true },
            ]}
          />
        )}
      </Show>
    </>
  );
}

export function PolicyPage({ name }: { name: string }): JSX.Element {
  useTitle(name);
  const s = useStore();
  const policy = useLoaded((signal) => get<PolicyStatus>(path("policy", name), {}, signal), ["Policy", "Operator", "Evaluation"], [name]);
  return (
    <>
      <h1>Policy {name}</h1>
      <Show of={policy}>
        {(p) => (
          <>
            <dl class="figures">
              <Figure name="Active"><code>{shortVersion(p.Active ?? "") || "none"}</code></Figure>
              <Figure name="In shadow"><code>{shortVersion(p.Shadow ?? "") || "none"}</code></Figure>
              {p.Until ? <Figure name="Trial ends">{time(p.Until)}</Figure> : null}
              {p.Trial ? <Figure name="Trial with blocks"><Link to={href("trials", name)}>{p.Trial.End ? p.Trial.End.Ended : "in progress"}</Link></Figure> : null}
              {p.LastTrial ? <Figure name="Last trial" note={time(p.LastTrial.Time)}>{p.LastTrial.Ended}</Figure> : null}
              {p.Here ? <Figure name="Calls on this server" note={`${count(p.Here.Faults, "fault", "faults")}, ${count(p.Here.Fallbacks, "fallback", "fallbacks")}`}>{number(p.Here.Calls)}</Figure> : null}
            </dl>
            {s.may("policy") && p.Previous && !onTrial(p) && (
              <div class="bar">
                <Action label="Roll back" done={policy.reload} consequence={`Version ${shortVersion(p.Previous)} decides again on every server.`} run={() => write("PUT", path("policy", name, "rollback"), {})} />
              </div>
            )}
            {p.ShadowRun && (
              <section>
                <h2>Shadow run</h2>
                <dl class="figures">
                  <Figure name="Decisions" note={`since ${time(p.ShadowRun.Since)}`}>{p.ShadowRun.Decisions}</Figure>
                  <Figure name="Agreed" note={percent(p.ShadowRun.Agreed, p.ShadowRun.Decisions)}>{p.ShadowRun.Agreed}</Figure>
                  <Figure name="Differed" note={percent(p.ShadowRun.Differed, p.ShadowRun.Decisions)}>{p.ShadowRun.Differed}</Figure>
                  <Figure name="Failed">{p.ShadowRun.Failed}</Figure>
                </dl>
                <Table
                  name="differences" caption="Decisions that differ, on this server" empty="No decision differed." rows={p.ShadowRun.Differences ?? []} keyOf={(d) => d.EvalID + d.Index}
                  columns={[
                    { name: "Time", value: (d) => d.Time, cell: (d) => time(d.Time) },
                    { name: "Job", value: (d) => d.JobID, cell: (d) => <JobLink namespace={d.Namespace} id={d.JobID} /> },
                    { name: "Active evicts", value: (d) => victims(d.Active.Victims) },
                    { name: "Shadow evicts", value: (d) => victims(d.Shadow.Victims) },
                    { name: "Why", value: (d) => d.Shadow.Why ?? d.Active.Why ?? "" },
                  ]}
                />
              </section>
            )}
            <Table
              name="versions" caption="Versions" empty="The policy is built in; no version was loaded." rows={p.Loaded ?? []} keyOf={(v) => v.ID}
              columns={[
                { name: "Version", value: (v) => v.ID, cell: (v) => <code title={v.ID}>{shortVersion(v.ID)}</code> },
                { name: "Role", value: (v) => role(p, v.ID) },
                { name: "Kind", value: (v) => v.Kind },
                { name: "Loaded", value: (v) => v.Time, cell: (v) => time(v.Time) },
                { name: "Signer", value: (v) => v.Signer ?? "" },
                { name: "Checks", value: (v) => checks(v.Checks) },
                { name: "Disabled", value: (v) => p.Tripped?.[v.ID] ?? "" },
                ...(s.may("policy")
                  ? [{
                      name: "Actions", value: () => "",
                      cell: (v: { ID: string }) => (
                        <div class="bar">
                          {(v.ID !== p.Active || onTrial(p)) && <Action label="Activate" done={policy.reload} consequence={`${onTrial(p) ? "The trial ends. " : ""}Version ${shortVersion(v.ID)} decides on every server, once all have checked it.`} run={() => write("PUT", path("policy", name, "activate"), { Version: v.ID })} />}
                          {v.ID !== p.Active && v.ID !== p.Shadow && !onTrial(p) && <Action label="Shadow" done={policy.reload} consequence={`Version ${shortVersion(v.ID)} receives live decisions; its answers are recorded and not applied.`} run={() => write("PUT", path("policy", name, "shadow"), { Version: v.ID })} />}
                        </div>
                      ),
                    }]
                  : []),
              ]}
            />
            <Table
              name="decisions" caption="Decisions on this server, newest first" empty="This server made no decision with the policy." rows={p.Decisions ?? []} keyOf={(d) => d.EvalID + d.Index}
              columns={[
                { name: "Time", value: (d) => d.Time, cell: (d) => time(d.Time) },
                { name: "Job", value: (d) => d.JobID, cell: (d) => <JobLink namespace={d.Namespace} id={d.JobID} /> },
                { name: "Evicted", value: (d) => victims(d.Victims) },
                { name: "Calls", value: (d) => (d.Uses ?? []).reduce((n, u) => n + u.Calls, 0), numeric: true },
                { name: "Time in policy", value: (d) => (d.Uses ?? []).reduce((n, u) => n + u.Duration, 0) / 1e9, cell: (d) => millis((d.Uses ?? []).reduce((n, u) => n + u.Duration, 0)), numeric: true },
                { name: "Fault", value: (d) => d.Fault ?? "" },
              ]}
            />
          </>
        )}
      </Show>
    </>
  );
}

/** The trial with blocks in progress. Both versions take turns as the active one, and the page of the trial ends it. */
const onTrial = (p: PolicyStatus) => (p.Trial && !p.Trial.End ? p.Trial : undefined);

function role(p: PolicyStatus, id: string): string {
  const trial = onTrial(p);
  const now = id === p.Active ? ", decides in this block" : "";
  if (trial && id === trial.Candidate) return "candidate of the trial" + now;
  if (trial && id === trial.Baseline) return "active before the trial" + now;
  return id === p.Active ? "active" : id === p.Shadow ? "shadow" : id === p.Previous ? "previous" : "";
}

const victims = (ids: string[] | undefined) => (ids ?? []).map(short).join(", ") || "none";
const millis = (ns: number) => (ns < 1e9 ? `${number(ns / 1e6)} ms` : duration(ns / 1e9));

function checks(by: Record<string, { OK: boolean; Error?: string }> | undefined): string {
  const list = Object.entries(by ?? {});
  const failed = list.filter(([, c]) => !c.OK).map(([server, c]) => `${server}: ${c.Error}`);
  return failed.join("; ") || `passed on ${count(list.length, "server", "servers")}`;
}
