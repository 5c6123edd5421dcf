package view

import (
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Decision returns a recorded decision with a payload, which may be redacted.
func Decision(d *eventsink.Decision, p *events.DecisionPayload) *client.Decision {
	out := &client.Decision{
		Index: d.Index, Time: d.Time, Namespace: d.Namespace, EvalID: p.EvalID, JobID: p.JobID, Group: p.Group, AllocID: p.AllocID,
		NodeID: p.NodeID, ClusterID: p.ClusterID, Priority: int(p.Priority), PolicyVersion: p.PolicyVersion, Observed: p.Observed, Reason: p.Reason,
		Victims: []client.DecisionVictim{},
	}
	for _, v := range p.Victims {
		out.Victims = append(out.Victims, client.DecisionVictim{
			AllocID: v.AllocID, JobID: v.JobID, Namespace: v.Namespace, Group: v.Group, NodeID: v.NodeID, ClusterID: v.ClusterID,
			Replicas: v.Replicas, Priority: int(v.Priority), LostWork: v.LostWork, Reason: v.Reason,
		})
	}
	if w := p.Why; w != nil {
		out.Why = whyView(w)
	}
	return out
}

func whyView(w *events.Why) *client.DecisionWhy {
	out := &client.DecisionWhy{
		Text: w.Text, Search: w.Search, Options: w.Options, Ceiling: w.Ceiling, Omitted: w.Omitted,
		Selector: client.DecisionCall(w.Selector), Chooser: client.DecisionCall(w.Chooser),
		Ranked: []client.DecisionOption{}, Candidates: []client.DecisionCandidate{},
	}
	for _, r := range w.Ranked {
		option := client.DecisionOption{
			NodeID: r.NodeID, Tiers: r.Tiers[:], Score: r.Score, Victims: r.Victims, HighestPriority: int(r.HighestPriority),
		}
		if o := r.Outlook; o != nil {
			option.Outlook = &client.DecisionOutlook{LostWork: o.LostWork, CascadeDepth: int(o.CascadeDepth), Delay: o.Delay}
		}
		out.Ranked = append(out.Ranked, option)
	}
	for _, x := range w.Candidates {
		out.Candidates = append(out.Candidates, client.DecisionCandidate{
			AllocID: x.AllocID, Name: x.Name, JobID: x.JobID, Namespace: x.Namespace, NodeID: x.NodeID, Priority: int(x.Priority),
			Verdict: x.Verdict, Tier: x.Tier, Score: x.Score,
		})
	}
	return out
}
