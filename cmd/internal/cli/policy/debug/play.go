package debug

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	why "github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// listed is an evaluation that evicts, or with --all one that calls the policy.
type listed struct {
	Number  int      `json:"number"`
	At      string   `json:"at"`
	Job     string   `json:"job"`
	Placed  []string `json:"placed"`
	Evicted []string `json:"evicted"`
	Fault   string   `json:"fault,omitempty"`
}

// play plays a scenario until the requested evaluation.
func (c *command) play(ctx context.Context, f *simrun.ScenarioFile) (*decision, error) {
	granted, err := policyflags.ParseGrants(*c.grants)
	if err != nil {
		return nil, err
	}
	resolve := func(spec sim.PolicySpec) (*policy.Version, error) {
		r := policies.Request{PolicySpec: spec, OnFault: policy.Deny}
		variant := slices.ContainsFunc(f.Policies, func(v scenario.PolicyVariant) bool { return v.Name == spec.Name })
		if c.policy == "" || variant {
			r.Dir = filepath.Dir(f.Path)
		}
		r.Grants = append(slices.Clone(spec.Grants), granted.For(spec)...)
		return c.loader.Load(ctx, r)
	}
	var d *decision
	var failure error
	var all []listed
	progress := c.env.Progress()
	defer progress.Done()
	observe := func(p sim.Progress) {
		progress.Show(func(elapsed time.Duration) string { return simrun.FormatProgress(f.Name, p, elapsed) })
	}
	err = simrun.PlayRecorded(ctx, f, c.policy, tiebreak.Order{}, resolve, observe, func(r *simrun.Recorded) bool {
		l := summary(r)
		isCalled := c.all && len(r.Calls) > 0
		if len(l.Evicted) == 0 && r.Failed == nil && !isCalled {
			return true
		}
		l.Number = len(all) + 1
		l.At = scenario.Duration(time.Duration(r.Now)).String()
		all = append(all, l)
		if c.list || !c.wants(&l) {
			return true
		}
		d, failure = newPlayed(f.Path, r, &l)
		return false
	})
	progress.Done()
	if err == nil {
		err = failure
	}
	if err != nil {
		return nil, simrun.RunError(f, err, c.policy != "")
	}
	if c.list {
		return nil, c.out.Show(listDocument(f.Name, all))
	}
	if d == nil {
		return nil, c.notFound(f, all)
	}
	return d, nil
}

func (c *command) wants(l *listed) bool {
	switch {
	case c.alloc != "":
		return slices.Contains(l.Placed, c.alloc) || slices.Contains(l.Evicted, c.alloc)
	case c.number > 0:
		return l.Number == c.number
	}
	return true
}

func (c *command) notFound(f *simrun.ScenarioFile, all []listed) error {
	switch {
	case len(all) == 0 && c.all:
		return cmdutil.Usagef("use a recording in which nodes are full", "%s: no evaluation calls the policy", f.Path)
	case len(all) == 0:
		return cmdutil.Usagef("add --all for evaluations that evict nothing, or use another --policy", "%s: no evaluation evicts", f.Path)
	case c.alloc != "" && c.all:
		return cmdutil.Usagef("`cede policy debug "+f.Path+" --list --all` lists them", "%s: no evaluation that calls the policy concerns %s", f.Path, c.alloc)
	case c.alloc != "":
		return cmdutil.Usagef("`cede policy debug "+f.Path+" --list` lists them; --all adds those that evict nothing", "%s: no evaluation that evicts concerns %s", f.Path, c.alloc)
	case c.all:
		return cmdutil.Usagef(fmt.Sprintf("use --decision 1 to %d", len(all)), "%s: %s the policy, not %d", f.Path, cmdutil.Count(len(all), "evaluation calls", "evaluations call"), c.number)
	}
	return cmdutil.Usagef(fmt.Sprintf("use --decision 1 to %d", len(all)), "%s: %s, not %d", f.Path, cmdutil.Count(len(all), "evaluation evicts", "evaluations evict"), c.number)
}

// summary describes what an evaluation places and evicts.
func summary(r *simrun.Recorded) listed {
	l := listed{Job: r.Report.Eval.JobKey().String()}
	if r.Failed != nil {
		l.Fault = r.Failed.Error()
	}
	for _, p := range r.Report.Plans {
		for i := range p.Groups {
			g := &p.Groups[i]
			for _, a := range g.Placements {
				l.Placed = append(l.Placed, model.AllocName(a.Group, a.Index, a.Incarnation))
			}
			for _, e := range g.Evictions {
				l.Evicted = append(l.Evicted, allocName(r, e.AllocID))
			}
			for _, a := range g.Assignments {
				l.Placed = append(l.Placed, a.Binding.ID+" on "+a.ClusterID)
			}
			for _, w := range g.Withdrawals {
				if w.By != "" {
					l.Evicted = append(l.Evicted, allocName(r, w.AssignmentID))
				}
			}
		}
	}
	return l
}

// allocName returns the name of an allocation or an assignment.
func allocName(r *simrun.Recorded, id string) string {
	if a := r.Before.Alloc(id); a != nil {
		return model.AllocName(a.Group, a.Index, a.Incarnation)
	}
	if a := r.Before.Assignment(model.WholeID(id)); a != nil {
		return a.Binding.ID + " on " + a.ClusterID
	}
	return id
}

// newPlayed returns the decision of an evaluation.
func newPlayed(name string, r *simrun.Recorded, l *listed) (*decision, error) {
	d := &decision{Source: name, Kind: "recording", At: l.At, Number: l.Number, Job: l.Job, fault: r.Failed}
	for i := range r.Calls {
		if err := d.add(&r.Calls[i], r.Policies[r.Calls[i].Policy], nil, r.Failed != nil && i == len(r.Calls)-1); err != nil {
			return nil, err
		}
	}
	for _, p := range r.Report.Plans {
		for i := range p.Groups {
			for _, choice := range p.Groups[i].Choices {
				if w := why.Why(choice, r.Before); w != nil {
					d.Result = append(d.Result, w.Text...)
				}
			}
		}
	}
	if len(l.Evicted) == 0 && r.Failed == nil {
		d.Result = append(d.Result, l.Job+": nothing is evicted")
	}
	return d, nil
}

func listDocument(name string, all []listed) cmdutil.Document {
	names := make([]string, len(all))
	for i := range all {
		names[i] = fmt.Sprint(all[i].Number)
	}
	return cmdutil.Document{Data: all, Names: names, Page: func(p cmdutil.Page) {
		if len(all) == 0 {
			p.Printf("no evaluation of %s evicts\n", name)
			return
		}
		t := cmdutil.NewTable("DECISION", "AT", "JOB", "PLACED", "EVICTED")
		for _, l := range all {
			evicted := cmdutil.JoinOrNone(l.Evicted)
			if l.Fault != "" {
				evicted = "fault: " + l.Fault
			}
			t.Row(fmt.Sprint(l.Number), l.At, l.Job, cmdutil.JoinOrNone(l.Placed), evicted)
		}
		p.Table(t)
	}}
}
