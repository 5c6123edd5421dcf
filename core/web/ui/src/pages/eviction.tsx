import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, path, send, type Decision, type DecisionCandidate, type DecisionOption, type PolicyStub, type WhatIf, type WhatIfChange, type WhatIfRef } from "../api";
import { count, duration, time } from "../format";
import { Failure, Figure, JobLink, Link, NodeLink, short, shortVersion, Show, useTitle } from "../parts";
import { href } from "../router";
import { useLoaded, useStore } from "../store";
import { save, Table } from "../table";

/** Explains the newest decision that evicted an allocation, or replicas of a binding. */
export function EvictionPage({ id }: { id: string }): JSX.Element {
  useTitle("Eviction of " + short(id));
  const decisions = useLoaded((signal) => get<Decision[]>(path("allocation", id, "decisions"), {}, signal), [], [id]);
  return (
    <>
      <h1>Eviction of <code title={id}>{short(id)}</code></h1>
      <Show of={decisions}>{(list) => <Found id={id} decision={list.find((d) => d.Victims?.some((v) => v.AllocID === id))} />}</Show>
    </>
  );
}

function Found({ id, decision: d }: { id: string; decision: Decision | undefined }): JSX.Element {
  const s = useStore();
  const policies = useLoaded((signal) => get<PolicyStub[]>("/v1/policies", {}, signal), ["Policy"]);
  if (!d) return <p class="empty">No recorded decision evicted this allocation. The history of a server is bounded.</p>;
  const victim = d.Victims!.find((v) => v.AllocID === id)!;
  const policy = policies.value?.find((p) => [p.Active, p.Previous, p.Shadow, p.Trial?.Candidate, p.Trial?.Baseline].includes(d.PolicyVersion));
  return (
    <>
      <dl class="figures">
        <Figure name={d.Observed ? "Would be evicted" : "Evicted"} note={`priority ${victim.Priority}`}><JobLink namespace={victim.Namespace} id={victim.JobID} /></Figure>
        <Figure name="For" note={`priority ${d.Priority}`}><JobLink namespace={d.Namespace} id={d.JobID} /></Figure>
        <Figure name="Place"><Place id={d.NodeID || d.ClusterID || ""} /></Figure>
        <Figure name="Time">{time(d.Time)}</Figure>
        <Figure name="Lost work">{duration(victim.LostWork / 1e9)}</Figure>
        <Figure name="Policy version">
          <code title={d.PolicyVersion}>{shortVersion(d.PolicyVersion)}</code>
          {policy && <small>of <Link to={href("policies", policy.Name)}>{policy.Name}</Link></small>}
        </Figure>
      </dl>
      <section>
        <h2>Why</h2>
        <p>{sentence(d.Reason)}</p>
        {d.Why ? d.Why.Text?.map((text) => <p key={text}>{text}</p>) : <p>The server that decided recorded no reasons.</p>}
      </section>
      {d.Observed ? (
        <p class="note">The decision was only observed. It cannot be made again with changes, or certified.</p>
      ) : (
        <>
          <Changes id={id} />
          {s.may("operate", "policy") && <Certificate id={id} />}
        </>
      )}
      {d.Why && <Candidates list={d.Why.Candidates ?? []} />}
      {d.Why && <Options list={d.Why.Ranked ?? []} />}
    </>
  );
}

/** A link to a node, by its name, or to the member clusters. */
function Place({ id }: { id: string }): JSX.Element {
  const { cluster } = useStore();
  const node = cluster?.node(id);
  return node ? <NodeLink id={id} name={node.name} /> : <>{id}</>;
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + ".";

/** What would have spared the victim. The server makes the decision again, so it is on request. */
function Changes({ id }: { id: string }): JSX.Element {
  const [answer, set] = useState<WhatIf>();
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState(false);
  const ask = async () => {
    setRunning(true);
    setError(undefined);
    try {
      set(await get<WhatIf>(path("allocation", id, "what-if")));
    } catch (err) {
      setError(err as Error);
    } finally {
      setRunning(false);
    }
  };
  return (
    <section>
      <h2>What would have spared it</h2>
      <Failure error={error} />
      {!answer && (
        <div class="bar">
          <button type="button" disabled={running} onClick={() => void ask()}>Make the decision again, with changes</button>
          <span role="status">{running ? "The server computes the state of then…" : ""}</span>
        </div>
      )}
      {answer && (
        <>
          {answer.Text?.map((text) => <p key={text}>{text}</p>)}
          <Table
            name="changes" caption="Changes" empty="No change that was tried spares it." rows={answer.Changes ?? []} keyOf={(c: WhatIfChange) => c.Text}
            columns={[
              { name: "Change", value: (c) => c.Text },
              { name: "Evicted instead", value: (c) => refs(c.Instead) },
              { name: "Instances that wait in addition", value: (c) => c.Waiting, numeric: true },
            ]}
          />
          <p>Each change was executed, and is the smallest of the values of its kind that were tried. The decision was made {count(answer.Evaluations, "time", "times")}.</p>
        </>
      )}
    </section>
  );
}

const refs = (list: WhatIfRef[] | null | undefined) => (list?.length ? list.map((r) => `${r.Name} (priority ${r.Priority})`).join(", ") : "–");

/** Downloads the certificate of the decision. */
function Certificate({ id }: { id: string }): JSX.Element {
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState(false);
  const download = async () => {
    setRunning(true);
    setError(undefined);
    try {
      save(`${short(id)}.cert`, await (await send(path("allocation", id, "certificate"))).blob());
    } catch (err) {
      setError(err as Error);
    } finally {
      setRunning(false);
    }
  };
  return (
    <section>
      <h2>Certificate</h2>
      <p>A signed file that <code>cede decision verify</code> checks without a server.</p>
      <Failure error={error} />
      <div class="bar">
        <button type="button" disabled={running} onClick={() => void download()}>Download the certificate</button>
      </div>
    </section>
  );
}

/** What a verdict about a candidate means. */
const verdicts: Record<string, string> = {
  "evicted": "a victim",
  "would be evicted": "a victim, if preemption were not only observed",
  "unneeded": "the policy listed it after the victims that sufficed; the first of them was next in line",
  "reprieved": "the policy selected it, but the job fits without it",
  "spared": "the policy excluded it",
  "shielded": "a strict disruption budget, or the job that is evicted all or none, protects it",
};

function Candidates({ list }: { list: DecisionCandidate[] }): JSX.Element {
  const present = Object.keys(verdicts).filter((v) => list.some((c) => c.Verdict === v));
  return (
    <>
      <Table
        name="candidates" caption="Candidates" empty="The policy saw no candidates." rows={list} keyOf={(c) => c.AllocID + c.Name}
        columns={[
          { name: "Allocation", value: (c) => c.Name },
          { name: "Priority", value: (c) => c.Priority, numeric: true },
          { name: "Node", value: (c) => c.NodeID, cell: (c) => <Place id={c.NodeID} /> },
          { name: "Verdict", value: (c) => c.Verdict },
          { name: "Tier", value: (c) => c.Tier ?? "", numeric: true },
          { name: "Score", value: (c) => c.Score ?? "", numeric: true },
        ]}
      />
      <p class="note">
        {present.map((v) => `${v}: ${verdicts[v]}. `).join("")}
        {list.some((c) => c.Score != null) && "The policy evicts lower tiers first, and lower scores of the same tier."}
      </p>
    </>
  );
}

function Options({ list }: { list: DecisionOption[] }): JSX.Element {
  return (
    <>
      <Table
        name="options" caption="Options, the chosen one first" empty="No options were compared." rows={list} keyOf={(o) => o.NodeID}
        columns={[
          { name: "Node", value: (o) => o.NodeID, cell: (o) => <Place id={o.NodeID} /> },
          { name: "Victims", value: (o) => o.Victims, numeric: true },
          { name: "Highest priority", value: (o) => o.HighestPriority, numeric: true },
          { name: "Tiers", value: (o) => (o.Tiers ?? []).join(" ") },
          { name: "Score", value: (o) => o.Score, numeric: true },
        ]}
      />
      <p class="note">The policy gives each option four tiers and a score. Lower tiers rank first, from left to right; the score ranks options with equal tiers, the highest first.</p>
    </>
  );
}
