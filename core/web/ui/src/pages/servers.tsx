import type { JSX } from "preact";
import { get, type ServersHealth } from "../api";
import { Figure, Show, useTitle } from "../parts";
import { useLoaded } from "../store";
import { Table } from "../table";

export function Servers(): JSX.Element {
  useTitle("Servers");
  const health = useLoaded((signal) => get<ServersHealth>("/v1/operator/autopilot/health", {}, signal), ["Operator", "Evaluation"]);
  return (
    <>
      <h1>Servers</h1>
      <Show of={health}>
        {(h) => (
          <>
            <dl class="figures">
              <Figure name="Health">{h.Healthy ? "healthy" : "degraded"}</Figure>
              <Figure name="May fail" note="servers, without loss of the quorum">{h.FailureTolerance}</Figure>
              <Figure name="Leader">{h.Servers.find((s) => s.Leader)?.Name ?? "none"}</Figure>
            </dl>
            <Table
              name="servers" caption="Servers" empty="No server is known." rows={h.Servers} keyOf={(s) => s.ID}
              columns={[
                { name: "Server", value: (s) => s.Name },
                { name: "Address", value: (s) => s.Address },
                { name: "Role", value: (s) => (s.Leader ? "leader" : s.Voter ? "voter" : "non-voter") },
                { name: "Health", value: (s) => (s.Healthy ? "healthy" : "unhealthy") },
                { name: "Gossip", value: (s) => s.SerfStatus },
                { name: "Last contact", value: (s) => s.LastContact },
                { name: "Last index", value: (s) => s.LastIndex, numeric: true },
                { name: "Version", value: (s) => s.Version },
              ]}
            />
          </>
        )}
      </Show>
    </>
  );
}
