import type { JSX } from "preact";
import { get, type Namespace } from "../api";
import { number, percent } from "../format";
import { Show, useTitle } from "../parts";
import { useLoaded, useStore } from "../store";
import { Table } from "../table";

export function Namespaces(): JSX.Element {
  useTitle("Namespaces");
  const { cluster } = useStore();
  const namespaces = useLoaded((signal) => get<Namespace[]>("/v1/namespaces", {}, signal), ["Job", "Binding", "Operator"]);
  const held = new Map<string, number[]>();
  for (const a of cluster?.allocs.values() ?? []) {
    const sums = held.get(a.group.namespace) ?? a.group.use.map(() => 0);
    a.group.use.forEach((n, i) => (sums[i]! += n));
    held.set(a.group.namespace, sums);
  }
  const whole = (cluster?.resources ?? []).map((_, i) => cluster!.nodes.reduce((sum, n) => sum + n.capacity[i]!, 0));
  return (
    <>
      <h1>Namespaces</h1>
      <Show of={namespaces}>
        {(rows) => {
          const weights = rows.reduce((sum, n) => sum + (n.Weight ?? 1), 0);
          return (
            <Table
              name="namespaces" caption="Namespaces" empty="There are no namespaces." rows={rows} keyOf={(n) => n.Name ?? ""}
              columns={[
                { name: "Namespace", value: (n) => n.Name ?? "" },
                { name: "Description", value: (n) => n.Description ?? "" },
                { name: "Weight", value: (n) => n.Weight ?? 1, cell: (n) => `${number(n.Weight ?? 1)} (${percent(n.Weight ?? 1, weights)})`, numeric: true },
                { name: "Jobs", value: (n) => n.Jobs ?? 0, numeric: true },
                { name: "Bindings", value: (n) => n.Bindings ?? 0, numeric: true },
                ...(cluster?.resources ?? []).map((r, i) => ({
                  name: `Share of ${r}`, value: (n: Namespace) => (held.get(n.Name ?? "")?.[i] ?? 0) / Math.max(1, whole[i]!), numeric: true,
                  cell: (n: Namespace) => percent(held.get(n.Name ?? "")?.[i] ?? 0, whole[i]!),
                })),
              ]}
            />
          );
        }}
      </Show>
    </>
  );
}
