// The nodes of the cluster and the allocations on them, as the map of the API describes them
// and the event stream changes them.
import { get, path, type AllocationStub, type ClusterMap, type Event, type Job, type Node } from "./api";

export interface Group {
  namespace: string;
  job: string;
  type: string;
  group: string;
  priority: number;
  use: number[]; // per resource of the cluster
}

export interface Alloc {
  id: string;
  node: NodeRow;
  group: Group;
  start: number; // Unix seconds; 0: not started
}

export interface NodeRow {
  id: string;
  name: string;
  datacenter: string;
  state: string;
  capacity: number[]; // per resource of the cluster
  used: number[];
  allocs: Alloc[];
}

interface AllocationPayload {
  AllocID: string;
  JobID: string;
  Group: string;
  NodeID: string;
  Desired: string;
  Client: string;
}

interface NodePayload {
  NodeID: string;
  Name: string;
  Datacenter: string;
  Status: string;
  Eligible: boolean;
  Drain: boolean;
}

/** The resource in which a map counts the devices of all kinds. */
const devices = "devices";

/** Adds up the devices of a node, or those that a group requests, of which one is the default. */
function count(list: { Count?: number }[] | null | undefined): number {
  return (list ?? []).reduce((sum, d) => sum + (d.Count ?? 1), 0);
}

const terminal = new Set(["complete", "failed", "lost"]);

export class Cluster {
  readonly resources: string[];
  readonly nodes: NodeRow[] = [];
  readonly allocs = new Map<string, Alloc>();
  index: number;
  private readonly byID = new Map<string, NodeRow>();
  private readonly groups = new Map<string, Group>(); // newest version, by groupKey
  private readonly requested = new Map<string, Promise<void>>(); // groups and nodes that are being read

  /** changed is called after changes that arrive later than their event. */
  constructor(m: ClusterMap, private readonly changed: () => void) {
    this.index = m.Index;
    this.resources = m.Resources;
    m.Nodes.ID.forEach((id, i) => {
      this.addNode({
        id, name: m.Nodes.Name[i]!, datacenter: m.Nodes.Datacenter[i]!, state: m.Nodes.State[i]!,
        capacity: m.Nodes.Capacity[i]!, used: m.Resources.map(() => 0), allocs: [],
      });
    });
    const versions = new Map<string, number>();
    const groups = m.Groups.map((g) => {
      const group: Group = { namespace: g.Namespace, job: g.JobID, type: g.JobType, group: g.Group, priority: g.Priority, use: g.Use };
      const key = groupKey(g.Namespace, g.JobID, g.Group);
      if ((versions.get(key) ?? -1) < g.Version) {
        versions.set(key, g.Version);
        this.groups.set(key, group);
      }
      return group;
    });
    m.Allocs.ID.forEach((id, i) => {
      this.add({ id, node: this.nodes[m.Allocs.Node[i]!]!, group: groups[m.Allocs.Group[i]!]!, start: m.Allocs.StartTime[i]! });
    });
  }

  node(id: string): NodeRow | undefined {
    return this.byID.get(id);
  }

  /** Applies one event. */
  apply(e: Event): void {
    this.index = Math.max(this.index, e.Index);
    switch (e.Topic) {
      case "Allocation":
        this.applyAllocation(e, e.Payload as AllocationPayload);
        break;
      case "Node":
        this.applyNode(e.Payload as NodePayload, e.Type === "NodeDeleted");
        break;
      case "Job": // a new version may have other amounts
        for (const key of this.groups.keys()) {
          if (key.startsWith(groupKey(e.Namespace ?? "", e.Key, ""))) this.groups.delete(key);
        }
    }
  }

  private applyAllocation(e: Event, p: AllocationPayload): void {
    const id = p.AllocID;
    const known = this.allocs.get(id);
    if (p.Desired !== "run" || terminal.has(p.Client)) {
      if (known) this.remove(known);
      return;
    }
    if (known) {
      if (known.start === 0 && p.Client === "running") known.start = Math.floor(e.Time / 1e9);
      return;
    }
    const key = groupKey(e.Namespace ?? "", p.JobID, p.Group);
    const group = this.groups.get(key);
    const node = this.byID.get(p.NodeID);
    if (group && node) {
      this.add({ id, node, group, start: p.Client === "running" ? Math.floor(e.Time / 1e9) : 0 });
      return;
    }
    const missing = [
      group ? undefined : this.once(key, () => this.readGroup(key, id, e.Namespace ?? "")),
      node ? undefined : this.once("node/" + p.NodeID, () => this.readNode(p.NodeID)),
    ];
    void Promise.all(missing).then(() => {
      if (this.groups.has(key) && this.byID.has(p.NodeID)) {
        this.applyAllocation(e, p);
        this.changed();
      }
    });
  }

  private applyNode(p: NodePayload, deleted: boolean): void {
    const node = this.byID.get(p.NodeID);
    if (deleted) {
      if (!node) return;
      for (const a of [...node.allocs]) this.remove(a);
      this.nodes.splice(this.nodes.indexOf(node), 1);
      this.byID.delete(p.NodeID);
    } else if (node) {
      node.state = nodeState(p);
      node.name = p.Name || node.id;
      node.datacenter = p.Datacenter;
    } else {
      void this.once("node/" + p.NodeID, () => this.readNode(p.NodeID)).then(() => this.changed());
    }
  }

  /** Runs read once at a time for a key. Objects that cannot be read were deleted since. */
  private once(key: string, read: () => Promise<void>): Promise<void> {
    let running = this.requested.get(key);
    if (!running) {
      running = read().catch(() => undefined).finally(() => this.requested.delete(key));
      this.requested.set(key, running);
    }
    return running;
  }

  private async readGroup(key: string, alloc: string, namespace: string): Promise<void> {
    const a = await get<AllocationStub>(path("allocation", alloc), { namespace });
    const use = { ...a.ResourceUse };
    if (this.resources.includes(devices)) {
      const job = await get<Job>(path("job", a.JobID), { namespace: a.Namespace });
      use[devices] = count(job.TaskGroups?.find((g) => g.Name === a.TaskGroup)?.Devices);
    }
    this.groups.set(key, {
      namespace: a.Namespace, job: a.JobID, type: a.JobType, group: a.TaskGroup, priority: a.Priority,
      use: this.resources.map((r) => use[r] ?? 0),
    });
  }

  private async readNode(id: string): Promise<void> {
    const n = await get<Node>(path("node", id));
    if (this.byID.has(id)) return;
    const name = n.Name ?? id;
    const datacenter = n.Datacenter ?? "";
    this.addNode({
      id, name, datacenter, used: this.resources.map(() => 0), allocs: [],
      state: nodeState({ NodeID: id, Name: name, Datacenter: datacenter, Status: n.Status ?? "", Drain: n.Drain ?? false, Eligible: n.SchedulingEligibility !== "ineligible" }),
      capacity: this.resources.map((r) => (n.Capacity?.[r] ?? 0) - (n.ReservedCapacity?.[r] ?? 0) + (r === devices ? count(n.Devices) : 0)),
    });
    this.nodes.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  private addNode(n: NodeRow): void {
    this.nodes.push(n);
    this.byID.set(n.id, n);
  }

  private add(a: Alloc): void {
    this.allocs.set(a.id, a);
    a.node.allocs.push(a);
    a.group.use.forEach((amount, i) => (a.node.used[i]! += amount));
  }

  private remove(a: Alloc): void {
    this.allocs.delete(a.id);
    a.node.allocs.splice(a.node.allocs.indexOf(a), 1);
    a.group.use.forEach((amount, i) => (a.node.used[i]! -= amount));
  }
}

function groupKey(namespace: string, job: string, group: string): string {
  return JSON.stringify([namespace, job]) + group;
}

function nodeState(p: NodePayload): string {
  if (p.Status !== "ready") return p.Status;
  if (p.Drain) return "draining";
  return p.Eligible ? "ready" : "ineligible";
}
