package server

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// planRules is by which rules a plan chose its victims, or found that nobody may be
// evicted for what it left without a place. Under others it would be another plan.
type planRules struct {
	Policy  string // its name
	Version string
	Delta   string // of the scheduler's configuration, in words
	Evicts  bool   // preemption was on for the type of job
}

// rulesOf is the rules under which a job is planned by a set of policies.
func rulesOf(snap *state.Snapshot, set *policy.Set, job *model.Job) (*planRules, error) {
	c := snap.Config()
	version, err := set.Select(job.Policy, c.Policy)
	if err != nil {
		return nil, err
	}
	return &planRules{Policy: version.Name, Version: version.ID, Delta: deltaOf(c), Evicts: c.Preemption[job.Type]}, nil
}

// mattersTo is whether a plan might be another one under other rules. One that finds room
// for everything and evicts nobody asked no policy.
func (r *planRules) mattersTo(p *Proposal) bool { return len(p.Evict)+len(p.Failed) > 0 }

// otherRules lists what changed of the rules by which a plan was made.
func (s *Server) otherRules(snap *state.Snapshot, p *shownPlan) []string {
	if p.rules == nil {
		return nil
	}
	set := s.policies.Pin()
	defer set.Unpin()
	now, err := rulesOf(snap, set, p.Job)
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if was := p.rules; now.Policy != was.Policy || now.Version != was.Version {
		add("policy %s decided when it was planned, and %s decides now",
			versionName(was.Policy, was.Version), versionName(now.Policy, now.Version))
	}
	if now.Delta != p.rules.Delta {
		add("the priority delta is %s, and was %s when it was planned", now.Delta, p.rules.Delta)
	}
	if now.Evicts != p.rules.Evicts {
		add("preemption is %s for %s jobs, and was %s when it was planned", onOff(now.Evicts), p.Job.Type, onOff(p.rules.Evicts))
	}
	return append(list, othersVictims(set, p.Batch)...)
}

func deltaOf(c *model.SchedulerConfig) string {
	if c.PriorityDelta == nil {
		return "the policy's"
	}
	return strconv.Itoa(int(*c.PriorityDelta))
}

func versionName(name, id string) string { return name + "@" + shortVersion(id) }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// othersVictims lists the versions that chose victims, as one does for another that is at
// fault, and that are not in force any more.
func othersVictims(set *policy.Set, b *apply.Batch) []string {
	var list []string
	for version := range policiesOf(b) {
		if !slices.ContainsFunc(set.Versions(), func(v *policy.Version) bool { return v.ID == version }) {
			list = append(list, fmt.Sprintf("policy version %s chose its victims, and is not in force", shortVersion(version)))
		}
	}
	slices.Sort(list)
	return list
}

func policiesOf(b *apply.Batch) map[string]struct{} {
	versions := map[string]struct{}{}
	for _, p := range b.Plans {
		for _, g := range p.Plan.Groups {
			for _, e := range g.Evictions {
				versions[e.Policy] = struct{}{}
			}
		}
	}
	return versions
}
