import type { JSX } from "preact";
import { get, path, type Node, type NodeRisk, type NodeRiskLevel } from "../api";
import type { Alloc, NodeRow } from "../cluster";
import { Bands } from "../colors";
import { amount, count, duration, percent } from "../format";
import { NodeMap, priorities } from "../nodemap";
import { Action, Figure, JobLink, NodeLink, short, Show, Share, useTitle, write } from "../parts";
import { setQuery, useLocation } from "../router";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";

export function Nodes(): JSX.Element {
  useTitle("Nodes");
  const { cluster } = useStore();
  const query = useLocation().query;
  if (!cluster) return <p class="empty">Loading…</p>;
  const resource = Math.max(0, cluster.resources.indexOf(query.get("resource") ?? "cpu"));
  const bands = new Bands(priorities(cluster));
  return (
    <>
      <h1>Nodes</h1>
      <div class="bar">
        <label>
          Resource{" "}
          <select value={cluster.resources[resource] ?? ""} onChange={(e) => setQuery({ resource: e.currentTarget.value })}>
            {cluster.resources.map((r) => (
              <option key={r} value={r}>{r}</option>
            ))}
          </select>
        </label>
        <ul class="legend" aria-label="Colors of priorities">
          {bands.legend().map((b) => (
            <li key={b.label}>
              <i class="swatch" style={{ background: b.color }} />
              priority {b.label}
            </li>
          ))}
          <li><i class="swatch free" />free</li>
          <li><i class="swatch paused" />ineligible or draining</li>
          <li><i class="swatch down" />down</li>
        </ul>
      </div>
      <NodeMap cluster={cluster} version={cluster.index} resource={resource} />
      <Table
        name="nodes" caption="Nodes" empty="No node has registered." rows={cluster.nodes} keyOf={(n) => n.id}
        columns={[
          { name: "Node", value: (n) => n.name, cell: (n) => <NodeLink id={n.id} name={n.name} /> },
          { name: "State", value: (n) => n.state },
          { name: "Datacenter", value: (n) => n.datacenter },
          { name: "Allocations", value: (n) => n.allocs.length, numeric: true },
          { name: "Lowest priority", value: (n) => lowest(n), cell: (n) => (n.allocs.length ? lowest(n) : "–"), numeric: true },
          ...cluster.resources.map((r, i) => ({
            name: `${r} used`, value: (n: NodeRow) => n.used[i]! / Math.max(1, n.capacity[i]!), numeric: true,
            cell: (n: NodeRow) => `${amount(r, n.used[i]!)} of ${amount(r, n.capacity[i]!)}`,
          })),
        ]}
      />
    </>
  );
}

function lowest(n: NodeRow): number {
  return n.allocs.reduce((low, a) => Math.min(low, a.group.priority), Number.MAX_SAFE_INTEGER);
}

export function NodePage({ id }: { id: string }): JSX.Element {
  const s = useStore();
  const row = s.cluster?.node(id);
  useTitle(row?.name ?? id);
  const node = useLoaded((signal) => get<Node>(path("node", id), {}, signal), ["Node"], [id]);
  const resources = s.cluster?.resources ?? [];
  return (
    <>
      <h1>Node {row?.name ?? id}</h1>
      <Show of={node}>
        {(n) => (
          <>
            <dl class="figures">
              <Figure name="Status">{n.Status}</Figure>
              <Figure name="Eligibility">{n.Drain ? "draining" : n.SchedulingEligibility}</Figure>
              <Figure name="Datacenter">{n.Datacenter}</Figure>
              <Figure name="ID"><code>{n.ID}</code></Figure>
            </dl>
            {s.may("operate") && (
              <div class="bar">
                {n.Drain ? (
                  <Action label="End the drain" consequence="The node becomes eligible for new allocations." done={node.reload}
                    run={() => write("PUT", path("node", id, "drain"), { NodeID: id, DrainSpec: null, MarkEligible: true })} />
                ) : (
                  <Action label="Drain" consequence={`The node is emptied: ${count(row?.allocs.length ?? 0, "allocation", "allocations")} must move to other nodes. What cannot be moved is stopped after an hour.`} done={node.reload}
                    run={() => write("PUT", path("node", id, "drain"), { NodeID: id, DrainSpec: { Deadline: 3600e9 } })} />
                )}
                {!n.Drain && (
                  <Action
                    label={n.SchedulingEligibility === "ineligible" ? "Make eligible" : "Make ineligible"} done={node.reload}
                    consequence={n.SchedulingEligibility === "ineligible" ? "The node receives new allocations." : "The node receives no new allocations. The present ones stay."}
                    run={() => write("PUT", path("node", id, "eligibility"), { NodeID: id, Eligibility: n.SchedulingEligibility === "ineligible" ? "eligible" : "ineligible" })}
                  />
                )}
              </div>
            )}
          </>
        )}
      </Show>
      {row && (
        <section>
          <h2>Capacity</h2>
          {resources.map((r, i) => (
            <Share key={r} part={row.used[i]!} whole={row.capacity[i]!} label={`${r}: ${amount(r, row.used[i]!)} of ${amount(r, row.capacity[i]!)} used (${percent(row.used[i]!, row.capacity[i]!)})`} />
          ))}
        </section>
      )}
      <Next id={id} />
      <Allocs name="allocs" caption="Allocations, lowest priority first" rows={[...(row?.allocs ?? [])].sort((a, b) => a.group.priority - b.group.priority)} resources={resources} />
    </>
  );
}

/** What would be evicted next on a node. The server makes decisions for it, so it is not read again with every event. */
function Next({ id }: { id: string }): JSX.Element {
  const risk = useLoaded((signal) => get<NodeRisk>(path("node", id, "risk"), {}, signal), [], [id]);
  return (
    <section>
      <div class="bar">
        <h2>Who would be evicted next</h2>
        <button type="button" onClick={risk.reload}>Refresh</button>
      </div>
      <Show of={risk}>
        {(r) => (r.Reason ? <p class="empty">Nothing would be evicted: {r.Reason}.</p> : (
          <Table
            name="next" caption={`By a job that requests more${r.Resource === undefined ? "" : ` ${r.Resource}`} than is free here`} empty="Nothing would be evicted." rows={r.Levels ?? []} keyOf={(l: NodeRiskLevel) => String(l.From)}
            columns={[
              { name: "From priority", value: (l) => l.From, numeric: true },
              { name: "Evicts", value: (l) => l.Victims?.map((v) => `${v.Name} (priority ${v.Priority})`).join(", ") || "nothing" },
            ]}
          />
        ))}
      </Show>
    </section>
  );
}

export function Allocs({ name, caption, rows, resources }: { name: string; caption: string; rows: Alloc[]; resources: string[] }): JSX.Element {
  const age = (a: Alloc) => (a.start ? Date.now() / 1000 - a.start : 0);
  return (
    <Table
      name={name} caption={caption} empty="There are no allocations." rows={rows} keyOf={(a) => a.id}
      columns={[
        { name: "Allocation", value: (a) => a.id, cell: (a) => <code title={a.id}>{short(a.id)}</code> },
        { name: "Job", value: (a) => a.group.job, cell: (a) => <JobLink namespace={a.group.namespace} id={a.group.job} /> },
        { name: "Group", value: (a) => a.group.group },
        { name: "Namespace", value: (a) => a.group.namespace },
        { name: "Node", value: (a) => a.node.name, cell: (a) => <NodeLink id={a.node.id} name={a.node.name} /> },
        { name: "Priority", value: (a) => a.group.priority, numeric: true },
        { name: "Running for", value: age, cell: (a) => (a.start ? duration(age(a)) : "not started"), numeric: true },
        ...resources.map((r, i) => ({ name: r, value: (a: Alloc) => a.group.use[i]!, cell: (a: Alloc) => amount(r, a.group.use[i]!), numeric: true })),
      ]}
    />
  );
}
