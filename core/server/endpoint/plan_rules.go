package endpoint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// planRules are the rules by which a plan chose its victims, or found that nothing may
// be evicted for an instance that it could not place. Other rules could lead to another
// plan. They are part of the token, as JSON.
type planRules struct {
	Policy  string // its name
	Version string
	Delta   string // priority delta of the scheduler configuration, as text
	Evicts  bool   // preemption was enabled for the type of job
	// Weights is the index of the last change of the weights of namespaces, if the policy
	// reads them.
	Weights uint64
}

// rulesFor returns the rules by which a set of policies plans a job.
func rulesFor(snap *state.Snapshot, set *policy.Set, job *model.Job) (*planRules, error) {
	c := snap.Config()
	version, err := set.Select(job.Policy, c.Policy)
	if err != nil {
		return nil, err
	}
	rules := &planRules{Policy: version.Name, Version: version.ID, Delta: deltaText(c), Evicts: c.Preemption[job.Type]}
	if version.ReadsWeights() {
		rules.Weights = snap.WeightsChangeIndex()
	}
	return rules, nil
}

// ruleDifferences returns the differences between the rules of a plan and the current
// ones.
func (p *jobPlanner) ruleDifferences(snap *state.Snapshot, plan *sealedPlan) []string {
	if plan.rules == nil {
		return nil
	}
	set := p.policies.Pin()
	defer set.Unpin()
	now, err := rulesFor(snap, set, plan.Job)
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if was := plan.rules; now.Policy != was.Policy || now.Version != was.Version {
		add("policy %s was active when it was planned, and %s is active now",
			versionText(was.Policy, was.Version), versionText(now.Policy, now.Version))
	}
	if now.Delta != plan.rules.Delta {
		add("the priority delta is %s, and was %s when it was planned", now.Delta, plan.rules.Delta)
	}
	if now.Evicts != plan.rules.Evicts {
		add("preemption is %s for %s jobs, and was %s when it was planned", onOff(now.Evicts), plan.Job.Type, onOff(plan.rules.Evicts))
	}
	if now.Weights > plan.rules.Weights {
		add("the weights of namespaces have changed since it was planned")
	}
	return append(list, inactiveVersions(set, plan.Batch)...)
}

func deltaText(c *model.SchedulerConfig) string {
	if c.PriorityDelta == nil {
		return "that of the policy"
	}
	return strconv.Itoa(int(*c.PriorityDelta))
}

func versionText(name, id string) string { return name + "@" + model.ShortVersion(id) }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// inactiveVersions returns a difference for each version that chose a victim of the plan
// and is not active any more. It need not be the version of the plan: another one decides
// if that is at fault.
func inactiveVersions(set *policy.Set, b *apply.Batch) []string {
	var list []string
	for version := range victimVersions(b) {
		if !slices.ContainsFunc(set.Versions(), func(v *policy.Version) bool { return v.ID == version }) {
			list = append(list, fmt.Sprintf("policy version %s chose its victims, and is not active", model.ShortVersion(version)))
		}
	}
	slices.Sort(list)
	return list
}

func victimVersions(b *apply.Batch) map[string]struct{} {
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
