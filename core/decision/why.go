package decision

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Names of searches and verdicts in records, by value.
var (
	searchNames  = [model.Searches]string{"best-node", "each-node", "gang", "strict-budgets", "clusters"}
	verdictNames = [model.Verdicts]string{"evicted", "unneeded", "reprieved", "spared", "shielded"}
)

// wouldEvict is the verdict about victims of a decision that was not carried out.
const wouldEvict = "would be evicted"

// WhyObserved is Why for a decision that was not carried out.
func WhyObserved(c *model.Choice, snap *state.Snapshot) *events.Why {
	w := Why(c, snap)
	if w == nil {
		return nil
	}
	for i := range w.Candidates {
		if x := &w.Candidates[i]; x.Verdict == verdictNames[model.Evicted] {
			x.Verdict = wouldEvict
		}
	}
	return w
}

// Why resolves an explanation in a state that holds its candidates. It returns nil for nil.
func Why(c *model.Choice, snap *state.Snapshot) *events.Why {
	if c == nil {
		return nil
	}
	w := &events.Why{
		Search: searchNames[c.Search], Options: c.Options, Ceiling: c.Ceiling, Omitted: c.Omitted,
		Selector: policyCall(c.Selector), Chooser: policyCall(c.Chooser),
	}
	for _, r := range c.Ranked {
		w.Ranked = append(w.Ranked, events.RankedOption{
			NodeID: r.NodeID, Tiers: r.Tiers, Score: finite(r.Score), Victims: r.Victims, HighestPriority: r.Highest,
			Outlook: outlook(r.Outlook),
		})
	}
	for i := range c.Candidates {
		w.Candidates = append(w.Candidates, candidate(&c.Candidates[i], snap))
	}
	w.Text = append(w.Text, choiceOfNode(named(c, snap), Exact), choiceOfVictims(w))
	return w
}

// named returns a choice for sentences: nodes have their names in place of their IDs. Two
// options of nodes with the same name keep the IDs.
func named(c *model.Choice, snap *state.Snapshot) *model.Choice {
	out := *c
	out.Ranked = slices.Clone(c.Ranked)
	seen := map[string]bool{}
	for i := range out.Ranked {
		r := &out.Ranked[i]
		if n := snap.Node(r.NodeID); n != nil && n.Name != "" {
			r.NodeID = n.Name
		}
		if seen[r.NodeID] {
			return c
		}
		seen[r.NodeID] = true
	}
	return &out
}

func outlook(o *model.Outlook) *events.Outlook {
	if o == nil {
		return nil
	}
	return &events.Outlook{LostWork: o.LostWork, CascadeDepth: o.Depth, Delay: o.Delay}
}

// candidate resolves a candidate. A candidate that the state lacks keeps its ID alone.
func candidate(c *model.Candidate, snap *state.Snapshot) events.Candidate {
	out := events.Candidate{AllocID: c.AllocID, Verdict: verdictNames[c.Verdict]}
	if c.Scored {
		score := finite(c.Score)
		out.Tier, out.Score = &c.Tier, &score
	}
	if a := snap.Alloc(c.AllocID); a != nil {
		out.Name, out.JobID, out.Namespace = model.AllocName(a.Group, a.Index, a.Incarnation), a.Job.ID, a.Job.Namespace
		out.NodeID, out.Priority = a.NodeID, a.Job.Priority
	} else if a := snap.Assignment(c.AllocID); a != nil {
		out.Name, out.JobID, out.Namespace, out.NodeID = a.Binding.ID, a.Binding.ID, a.Binding.Namespace, a.ClusterID
		if b := snap.Binding(a.Binding); b != nil {
			out.Priority = b.Priority
		}
	}
	return out
}

// policyCall resolves the columns that a hook reads to their names.
func policyCall(c model.PolicyCall) events.PolicyCall {
	return events.PolicyCall{Version: c.Version, Hook: c.Hook, Columns: sdk.Columns(c.Columns).Names(), Part: c.Part}
}

// finite returns a score that JSON can represent: infinities become the largest numbers.
func finite(x float64) float64 { return max(-math.MaxFloat64, min(x, math.MaxFloat64)) }
