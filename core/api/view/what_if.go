package view

import (
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/sdk/client"
)

// WhatIf returns the changes that would have spared a victim of a decision.
func WhatIf(d *eventsink.Decision, a *counterfactual.Answer) *client.WhatIf {
	out := &client.WhatIf{
		Index: d.Index, EvalID: d.EvalID, Text: a.Text(), Victim: whatIfRef(a.Victim), By: whatIfRef(a.By),
		Changes: []client.WhatIfChange{}, Next: whatIfRefs(a.Next), Waiting: a.Waiting, Evaluations: a.Evaluations,
	}
	for i := range a.Changes {
		f := &a.Changes[i]
		c := &f.Change
		out.Changes = append(out.Changes, client.WhatIfChange{
			Kind: c.Kind.String(), Text: a.ChangeText(f), Priority: int(c.Priority), Later: int64(c.Later), Checkpoint: f.Checkpoint,
			Group: c.Group, Resource: c.Resource, Amount: c.Amount, Of: c.Of, Instead: whatIfRefs(f.Instead), Waiting: f.Waiting,
		})
	}
	return out
}

func whatIfRef(r counterfactual.Ref) client.WhatIfRef {
	return client.WhatIfRef{AllocID: r.ID, Name: r.Name, Namespace: r.Namespace, JobID: r.JobID, NodeID: r.NodeID, Priority: int(r.Priority)}
}

func whatIfRefs(list []counterfactual.Ref) []client.WhatIfRef {
	out := make([]client.WhatIfRef, len(list))
	for i := range list {
		out[i] = whatIfRef(list[i])
	}
	return out
}

// NodeRisk returns the victims that would be next on a node.
func NodeRisk(nodeID string, f *counterfactual.Forecast) *client.NodeRisk {
	out := &client.NodeRisk{
		NodeID: nodeID, Resource: f.Resource, Amount: f.Amount, Levels: []client.NodeRiskLevel{}, Reason: f.Reason, Evaluations: f.Evaluations,
	}
	for _, l := range f.Levels {
		out.Levels = append(out.Levels, client.NodeRiskLevel{From: int(l.From), Victims: whatIfRefs(l.Victims)})
	}
	return out
}
