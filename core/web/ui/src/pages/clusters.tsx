import type { JSX } from "preact";
import { get, type BindingStub, type MemberCluster } from "../api";
import { amount } from "../format";
import { Show, useTitle } from "../parts";
import { useLoaded } from "../store";
import { Table } from "../table";

export function Clusters(): JSX.Element {
  useTitle("Bindings and clusters");
  const topics = ["Binding", "Cluster", "Assignment"];
  const bindings = useLoaded((signal) => get<BindingStub[]>("/v1/bindings", { namespace: "*" }, signal), topics);
  const clusters = useLoaded((signal) => get<MemberCluster[]>("/v1/clusters", {}, signal), topics);
  return (
    <>
      <h1>Bindings and clusters</h1>
      <Show of={bindings}>
        {(rows) => (
          <Table
            name="bindings" caption="Bindings" empty="No binding is registered." rows={rows} keyOf={(b) => b.Namespace + "\n" + b.ID}
            columns={[
              { name: "Binding", value: (b) => b.ID },
              { name: "Namespace", value: (b) => b.Namespace },
              { name: "Priority", value: (b) => b.Priority, numeric: true },
              { name: "Status", value: (b) => b.Status },
              { name: "Replicas", value: (b) => b.Replicas, numeric: true },
              { name: "Placed", value: (b) => b.Placed, numeric: true },
              { name: "Ready", value: (b) => b.Ready, numeric: true },
              { name: "Clusters", value: (b) => Object.entries(b.Clusters ?? {}).map(([id, n]) => `${id}: ${n}`).join(", ") },
              { name: "Why", value: (b) => b.StatusDescription ?? "" },
            ]}
          />
        )}
      </Show>
      <Show of={clusters}>
        {(rows) => (
          <Table
            name="clusters" caption="Member clusters" empty="No member cluster is registered." rows={rows} keyOf={(c) => c.ID ?? ""}
            columns={[
              { name: "Cluster", value: (c) => c.ID ?? "" },
              { name: "Status", value: (c) => c.Status ?? "" },
              { name: "Assignments", value: (c) => c.Assignments ?? 0, numeric: true },
              { name: "Claims", value: (c) => c.Claims?.length ?? 0, numeric: true },
              { name: "Free", value: (c) => amounts(c.Free) },
              { name: "Capacity", value: (c) => amounts(c.Capacity) },
            ]}
          />
        )}
      </Show>
    </>
  );
}

function amounts(of: Record<string, number> | null | undefined): string {
  return Object.entries(of ?? {}).map(([r, n]) => `${r} ${amount(r, n)}`).join(", ");
}
