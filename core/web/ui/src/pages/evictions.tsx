import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { duration, time } from "../format";
import { JobLink, Link, NodeLink, short, shortVersion, useTitle } from "../parts";
import { href } from "../router";
import { useStore, type Eviction } from "../store";
import { Table } from "../table";

export function Evictions(): JSX.Element {
  useTitle("Evictions");
  const s = useStore();
  const repeated = useMemo(() => countsByJob(s.evictions), [s.evictions[0]]);
  return (
    <>
      <h1>Evictions</h1>
      <p>
        Evictions that this server still has in its event stream, newest first.
        {s.lost && " Earlier ones may be missing."}
      </p>
      <Table
        name="evictions" caption="Evictions" empty="No eviction is stored." rows={s.evictions} keyOf={(e) => e.index + e.Victim.AllocID}
        columns={[
          { name: "Time", value: (e) => e.time, cell: (e) => <span class="nowrap">{time(e.time)}</span> },
          { name: "Evicted", value: (e) => e.Victim.JobID, cell: (e) => <><JobLink namespace={e.Victim.Namespace} id={e.Victim.JobID} /> <code title={e.Victim.AllocID}>{short(e.Victim.AllocID)}</code></> },
          { name: "Why", value: () => "", cell: (e) => <Link to={href("evictions", e.Victim.AllocID)}>why<span class="hidden"> {e.Victim.JobID} {short(e.Victim.AllocID)} was evicted</span></Link> },
          { name: "Priority", value: (e) => e.Victim.Priority, numeric: true },
          { name: "Evicted by", value: (e) => e.ByJobID, cell: (e) => <JobLink namespace={e.ByNamespace} id={e.ByJobID} /> },
          { name: "Its priority", value: (e) => e.ByPriority, numeric: true },
          { name: "Place", value: place, cell: (e) => (e.ClusterID ? <Link to={href("clusters")}>{e.ClusterID}</Link> : <NodeLink id={e.NodeID} {...nameOf(s.cluster?.node(e.NodeID)?.name)} />) },
          { name: "Lost work", value: (e) => e.Victim.LostWork / 1e9, cell: (e) => duration(e.Victim.LostWork / 1e9), numeric: true },
          { name: "Policy version", value: (e) => e.PolicyVersion, cell: (e) => <code title={e.PolicyVersion}>{shortVersion(e.PolicyVersion)}</code> },
          { name: "Evictions of the job", value: (e) => repeated.get(jobOf(e)) ?? 1, numeric: true },
        ]}
      />
    </>
  );
}

const place = (e: Eviction) => e.ClusterID || e.NodeID;
const nameOf = (name: string | undefined) => (name === undefined ? {} : { name });
const jobOf = (e: Eviction) => JSON.stringify([e.Victim.Namespace, e.Victim.JobID]);

function countsByJob(evictions: Eviction[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const e of evictions) counts.set(jobOf(e), (counts.get(jobOf(e)) ?? 0) + 1);
  return counts;
}
