package decision

import (
	"slices"

	"github.com/cede-scheduler/cede/core/events"
)

// Redact returns a decision as a reader may see it who sees only some namespaces: objects of
// other namespaces keep their priority, their cost and their verdict, and lose their
// identity. namespace is that of the placement. Redact returns nil if the reader may see
// neither the placement nor a victim, and p itself if it may see everything.
func Redact(p *events.DecisionPayload, namespace string, canSee func(namespace string) bool) *events.DecisionPayload {
	hidesVictims := slices.ContainsFunc(p.Victims, func(v events.Victim) bool { return !canSee(v.Namespace) })
	hidesCandidates := p.Why != nil && slices.ContainsFunc(p.Why.Candidates, func(c events.Candidate) bool { return !canSee(c.Namespace) })
	if canSee(namespace) && !hidesVictims && !hidesCandidates {
		return p
	}
	if !canSee(namespace) && !slices.ContainsFunc(p.Victims, func(v events.Victim) bool { return canSee(v.Namespace) }) {
		return nil
	}
	out := *p
	out.Victims = slices.Clone(p.Victims)
	for i := range out.Victims {
		if v := &out.Victims[i]; !canSee(v.Namespace) {
			*v = events.Victim{Priority: v.Priority, LostWork: v.LostWork, Replicas: v.Replicas}
		}
	}
	if hidesCandidates {
		why := *p.Why
		why.Candidates = slices.Clone(why.Candidates)
		for i := range why.Candidates {
			if c := &why.Candidates[i]; !canSee(c.Namespace) {
				*c = events.Candidate{Name: Hidden, Priority: c.Priority, Verdict: c.Verdict, Tier: c.Tier, Score: c.Score}
			}
		}
		why.Text = slices.Clone(why.Text)
		why.Text[len(why.Text)-1] = choiceOfVictims(&why)
		out.Why = &why
	}
	return &out
}

// Hidden is the name of a candidate in a namespace that the reader may not see.
const Hidden = "(another namespace)"
