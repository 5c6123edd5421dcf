// Requests to the HTTP API of the server that served the page.
import type { components } from "./api.gen";

type Schemas = components["schemas"];
export type Evaluation = Schemas["Evaluation"];
export type Decision = Schemas["Decision"];
export type DecisionCandidate = Schemas["DecisionCandidate"];
export type DecisionOption = Schemas["DecisionOption"];
export type WhatIf = Schemas["WhatIf"];
export type WhatIfChange = Schemas["WhatIfChange"];
export type WhatIfRef = Schemas["WhatIfRef"];
export type NodeRisk = Schemas["NodeRisk"];
export type NodeRiskLevel = Schemas["NodeRiskLevel"];
export type Event = Schemas["Event"];
export type Events = Schemas["Events"];
export type JobForecast = Schemas["JobForecast"];
export type StartTime = Schemas["StartTime"];
export type DecisionVictim = Schemas["DecisionVictim"];
export type JobStub = Schemas["JobStub"];
export type Job = Schemas["Job"];
export type AllocationStub = Schemas["AllocationStub"];
export type Node = Schemas["Node"];
export type PolicyStub = Schemas["PolicyStub"];
export type PolicyStatus = Schemas["PolicyStatus"];
export type Comparison = Schemas["Comparison"];
export type Comparisons = Schemas["Comparisons"];
export type PolicyComparison = Schemas["PolicyComparison"];
export type PolicyMeasure = Schemas["PolicyMeasure"];
export type PolicyTrialCourse = Schemas["PolicyTrialCourse"];
export type BindingStub = Schemas["BindingStub"];
export type MemberCluster = Schemas["Cluster"];
export type Namespace = Schemas["Namespace"];
export type ServersHealth = Schemas["ServersHealth"];
export type AgentSelf = Schemas["AgentSelf"];
export type Token = Schemas["Token"];
export type ClusterMap = Schemas["Map"];
export type SchedulerConfigurationResponse = Schemas["SchedulerConfigurationResponse"];
export type BrokerStatus = Schemas["BrokerStatus"];

/** An error response of the API. */
export class APIError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly hint: string) {
    super(message);
  }
  /** Reports whether another token could succeed. */
  get needsToken(): boolean {
    return this.status === 401;
  }
}

const tokenKey = "cede-token";

/** The token of this browser tab, or "". It is not stored beyond the tab. */
export function token(): string {
  return sessionStorage.getItem(tokenKey) ?? "";
}

export function setToken(secret: string): void {
  if (secret === "") sessionStorage.removeItem(tokenKey);
  else sessionStorage.setItem(tokenKey, secret);
}

/** Is called if the server does not accept the token, which may have expired. */
let unauthenticated: (err: APIError) => void = () => undefined;

export function onUnauthenticated(f: (err: APIError) => void): void {
  unauthenticated = f;
}

export interface RequestOptions {
  method?: string;
  query?: Record<string, string>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request and returns the response. It throws an APIError if the status is not 2xx. */
export async function send(path: string, o: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { ...o.headers };
  const secret = token();
  if (secret !== "") headers["Authorization"] = `Bearer ${secret}`;
  if (o.body !== undefined) headers["Content-Type"] = "application/json";
  const parameters = new URLSearchParams(o.query).toString();
  const query = parameters ? "?" + parameters : "";
  const response = await fetch(path + query, {
    method: o.method ?? "GET",
    headers,
    ...(o.body === undefined ? {} : { body: JSON.stringify(o.body) }),
    ...(o.signal ? { signal: o.signal } : {}),
  });
  if (!response.ok) {
    const failure = (await response.json().catch(() => ({}))) as { Code?: string; Message?: string; Hint?: string };
    o.signal?.throwIfAborted(); // while the message was read: it is missing
    const err = new APIError(response.status, failure.Code ?? "", failure.Message ?? response.statusText, failure.Hint ?? "");
    if (err.needsToken && secret === token()) unauthenticated(err);
    throw err;
  }
  return response;
}

/** Returns the JSON value of a response. */
export async function get<T>(path: string, query: Record<string, string> = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, { query, ...(signal ? { signal } : {}) })).json()) as T;
}

/** Returns all pages of a list, up to a number of rows. */
export async function list<T>(path: string, query: Record<string, string>, most: number, signal?: AbortSignal): Promise<T[]> {
  const rows: T[] = [];
  let next = "";
  do {
    const page: Record<string, string> = { ...query, per_page: "1000", ...(next ? { next_token: next } : {}) };
    const response = await send(path, { query: page, ...(signal ? { signal } : {}) });
    rows.push(...((await response.json()) as T[]));
    next = response.headers.get("X-Nomad-NextToken") ?? "";
  } while (next !== "" && rows.length < most);
  return rows.slice(0, most);
}

/** Builds a path from segments, which may contain any character. */
export function path(...segments: string[]): string {
  return "/v1/" + segments.map(encodeURIComponent).join("/");
}
