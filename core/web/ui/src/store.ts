// The state that all pages share: the session, the cluster, and recent evictions.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { APIError, get, onUnauthenticated, token, type AgentSelf, type ClusterMap, type Event, type Token } from "./api";
import { Cluster } from "./cluster";
import { follow } from "./stream";

export interface Victim {
  AllocID: string;
  JobID: string;
  Namespace: string;
  Group: string;
  NodeID: string;
  ClusterID: string;
  Replicas: number;
  Priority: number;
  LostWork: number; // nanoseconds
  Reason: string;
}

interface PreemptionPayload {
  Victim: Victim;
  By: string;
  ByJobID: string;
  ByNamespace: string;
  ByPriority: number;
  NodeID: string;
  ClusterID: string;
  PolicyVersion: string;
}

export interface Eviction extends PreemptionPayload {
  index: number;
  time: number; // Unix nanoseconds
}

/** maxEvictions bounds the memory of a page that stays open. */
const maxEvictions = 5000;

/** The topics of the events that change the cluster or the lists of pages. */
const topics = ["Allocation", "Node", "Job", "Evaluation", "Policy", "Operator", "Binding", "Cluster", "Assignment"];

export class Store {
  cluster: Cluster | undefined;
  evictions: Eviction[] = []; // newest first
  self: AgentSelf | undefined;
  identity: Token | undefined; // of the token, if there is one
  connected = false;
  reason = "connecting"; // why it is not connected
  denied: APIError | undefined; // the server requires a token, or another one
  lost = false; // evictions before the oldest one are unknown

  private readonly listeners = new Set<() => void>();
  private readonly topics = new Map<string, number>(); // newest index by topic
  private scheduled = false;
  private session: AbortController | undefined;

  /** (Re)starts with the token of the tab. */
  async start(): Promise<void> {
    this.session?.abort();
    const session = (this.session = new AbortController());
    this.denied = undefined;
    this.identity = undefined;
    this.evictions = [];
    try {
      this.self = await get<AgentSelf>("/v1/agent/self", {}, session.signal);
      if (token() !== "") this.identity = await get<Token>("/v1/acl/token/self", {}, session.signal);
      await this.load(session.signal);
    } catch (err) {
      if (session.signal.aborted) return;
      if (err instanceof APIError && (err.status === 401 || err.status === 403)) return this.deny(err);
      this.reason = err instanceof Error ? err.message : String(err);
      this.notify();
      setTimeout(() => !session.signal.aborted && void this.start(), 2000);
      return;
    }
    void follow(1, ["Preemption"], { events: (b) => this.preempted(b.Events ?? []), lost: () => ((this.lost = true), this.notify()), ahead: () => this.restart(session.signal), connected: () => undefined }, session.signal);
  }

  /** Starts again, but not faster than a server that lags behind can follow. */
  private restart(session: AbortSignal): void {
    setTimeout(() => !session.aborted && void this.start(), 1000);
  }

  /** Ends the session: the server does not accept the token, or no longer. */
  deny(err: APIError): void {
    this.session?.abort();
    this.connected = false;
    this.denied = err;
    this.notify();
  }

  private async load(signal: AbortSignal): Promise<void> {
    const m = await get<ClusterMap>("/v1/map", {}, signal);
    const stream = new AbortController();
    signal.addEventListener("abort", () => stream.abort(), { once: true });
    const cluster = new Cluster(m, () => this.notify());
    // Events before the map may have been missed: lists are read again as well.
    if (this.cluster) for (const topic of topics) this.topics.set(topic, m.Index);
    this.cluster = cluster;
    this.notify();
    void follow(
      m.Index + 1,
      topics,
      {
        events: (b) => {
          for (const e of b.Events ?? []) {
            cluster.apply(e);
            this.topics.set(e.Topic, e.Index);
          }
          this.notify();
        },
        lost: () => {
          stream.abort();
          void this.load(signal).catch(() => void this.start());
        },
        ahead: () => this.restart(signal),
        connected: (ok, reason) => {
          this.connected = ok;
          this.reason = reason;
          this.notify();
        },
      },
      stream.signal,
    );
  }

  private preempted(events: Event[]): void {
    for (const e of events) {
      const p = e.Payload as PreemptionPayload;
      const known = this.evictions.findIndex((o) => o.index < e.Index);
      const same = known < 0 ? this.evictions : this.evictions.slice(0, known);
      if (same.some((o) => o.index === e.Index && o.Victim.AllocID === p.Victim.AllocID)) continue;
      this.evictions.unshift({ ...p, index: e.Index, time: e.Time });
    }
    this.evictions.length = Math.min(this.evictions.length, maxEvictions);
    this.notify();
  }

  /** The newest index of events of these topics: a page reads its list again when it changes. */
  version(topics: string[]): number {
    return Math.max(0, ...topics.map((t) => this.topics.get(t) ?? 0));
  }

  /** Reports whether the caller may change something that requires one of the roles. */
  may(...roles: string[]): boolean {
    const acl = this.self?.config["ACL"] as { Enabled?: boolean } | undefined;
    if (!acl?.Enabled) return this.self !== undefined;
    const have = this.identity?.Roles ?? [];
    return roles.some((r) => have.includes(r)) || have.includes("management");
  }

  private notify(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      for (const f of this.listeners) f();
    });
  }

  subscribe(f: () => void): () => void {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }
}

export const store = new Store();
onUnauthenticated((err) => store.deny(err));

/** Renders the component again when the store changes. */
export function useStore(): Store {
  const [, set] = useState(0);
  // An effect runs after the page is painted, and misses a change before that.
  useLayoutEffect(() => store.subscribe(() => set((n) => n + 1)), []);
  return store;
}

export interface Loaded<T> {
  value: T | undefined;
  error: Error | undefined;
  reload: () => void;
}

/** The least time between two reads of a value, in milliseconds. */
const readInterval = 1000;

/**
 * Reads a value, and reads it again after events of the topics, at most once a second, however
 * many events arrive. The previous value stays until the next one arrives.
 */
export function useLoaded<T>(read: (signal: AbortSignal) => Promise<T>, topics: string[], keys: unknown[] = []): Loaded<T> {
  const s = useStore();
  const [state, set] = useState<{ value: T | undefined; error: Error | undefined }>({ value: undefined, error: undefined });
  const latest = useRef(read);
  latest.current = read;
  const request = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let running = false;
    let again = false; // a change arrived while a read was running
    let last = -readInterval;
    const run = async () => {
      timer = 0;
      running = true;
      again = false;
      last = performance.now();
      try {
        const value = await latest.current(abort.signal);
        if (!abort.signal.aborted) set({ value, error: undefined });
      } catch (error) {
        if (!abort.signal.aborted) set((old) => ({ value: old.value, error: error as Error }));
      }
      running = false;
      if (again) schedule();
    };
    const schedule = () => {
      if (running) again = true;
      else if (timer === 0 && !abort.signal.aborted) timer = window.setTimeout(() => void run(), Math.max(0, last + readInterval - performance.now()));
    };
    request.current = schedule;
    schedule();
    return () => (clearTimeout(timer), abort.abort());
  }, keys);
  const version = s.version(topics);
  useEffect(() => request.current(), [version]);
  return { ...state, reload: () => request.current() };
}
