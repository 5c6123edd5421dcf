package scheduler_test

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A player returns outlooks by node, and records the plans.
type player struct {
	outlooks map[string]model.Outlook
	fuel     int
	plans    []*model.Plan
}

func (p *player) Play(_ *state.Snapshot, _ *model.Evaluation, _ *policy.Set, plan *model.Plan) (model.Outlook, int) {
	p.plans = append(p.plans, plan)
	last := plan.Groups[len(plan.Groups)-1].Placements
	return p.outlooks[last[len(last)-1].NodeID], 1
}

func (p *player) Fuel(*state.Snapshot) int { return p.fuel }

// ahead prefers the option after which the least work is lost, and records how many options
// each call had.
type ahead struct {
	named
	options *[]int
}

func (a ahead) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	*a.options = append(*a.options, in.Len())
	if a.more == 0 {
		return a.Default.ScoreOptions(in, out)
	}
	for i := range in.Len() {
		out.Tiers[0][i], out.Tiers[1][i] = in.ExpectedLostWork[i]+in.ExpectedDelay[i], int64(in.CascadeDepth[i])
	}
	return nil
}

func processAhead(t *testing.T, p *player, more sdk.Columns, job *model.Job) (*scheduler.Outcome, []int) {
	t.Helper()
	var options []int
	policies := coretest.Policies(func() sdk.Policy { return ahead{named{rules.New(), more}, &options} })
	job.Policy = "named"
	snap := coretest.PutJobs(coretest.FilledStore(12, 10), job)
	out, err := scheduler.New(scheduler.Config{Policies: policies, Player: p, Explain: true}).Process(coretest.Eval(job), snap, 1)
	if err != nil || out.Fault != nil || !out.Placed() {
		t.Fatal(err, out)
	}
	return out, options
}

func nodesOf(out *scheduler.Outcome) (nodes []string) {
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			nodes = append(nodes, a.NodeID)
		}
	}
	return nodes
}

// The best options are played, and the policy decides among these.
func TestLookAhead_DecidesAmongBestOptions(t *testing.T) {
	p := &player{fuel: 100, outlooks: map[string]model.Outlook{
		"n00000": {LostWork: 5, Depth: 1, Delay: 4}, "n00001": {LostWork: 3, Depth: 1, Delay: 6},
		"n00002": {LostWork: 7, Depth: 3, Delay: 1}, "n00003": {LostWork: 7, Depth: 2, Delay: 1}, "n00004": {},
	}}
	out, options := processAhead(t, p, sdk.LookAheadColumns, coretest.PreemptingJob(1).Obj())
	if nodes := nodesOf(out); !slices.Equal(nodes, []string{"n00003"}) {
		t.Errorf("placed on %v, want n00003: of the four that were played, it has the lowest sum and depth", nodes)
	}
	if !slices.Equal(options, []int{12, preempt.Playable}) || len(p.plans) != preempt.Playable {
		t.Errorf("calls about %v options, %d plays", options, len(p.plans))
	}
	for _, plan := range p.plans {
		if g := plan.Groups[0]; len(plan.Groups) != 1 || len(g.Placements) != 1 || len(g.Evictions) == 0 || g.Evictions[0].By != g.Placements[0].ID {
			t.Errorf("played %+v", plan)
		}
	}
	why := out.Plan.Groups[0].Choices[0]
	if why.Options != 12 || len(why.Ranked) != 4 || why.Ranked[0].Outlook == nil || *why.Ranked[0].Outlook != p.outlooks["n00003"] {
		t.Errorf("explained by %+v", why)
	}
}

// A plan of several instances is played with all that it places so far.
func TestLookAhead_PlaysPlanSoFar(t *testing.T) {
	p := &player{fuel: 100}
	out, _ := processAhead(t, p, sdk.LookAheadColumns, coretest.PreemptingJob(3).Obj())
	placed := 0
	for i, plan := range p.plans {
		placed = 0
		for _, g := range plan.Groups {
			placed += len(g.Placements)
		}
		if placed != i/preempt.Playable+1 {
			t.Errorf("play %d has %d placements", i, placed)
		}
	}
	if len(p.plans) != 3*preempt.Playable || len(nodesOf(out)) != 3 {
		t.Errorf("%d plays for %v", len(p.plans), nodesOf(out))
	}
}

// Plays end with the fuel of the evaluation: afterwards, the call about all options decides.
func TestLookAhead_EndsWithFuel(t *testing.T) {
	p := &player{fuel: preempt.Playable + 1, outlooks: map[string]model.Outlook{"n00000": {LostWork: 1}}}
	out, options := processAhead(t, p, sdk.LookAheadColumns, coretest.PreemptingJob(3).Obj())
	if len(p.plans) != p.fuel || !slices.Equal(options, []int{12, preempt.Playable, 12, 12}) {
		t.Errorf("%d plays, calls about %v options", len(p.plans), options)
	}
	if nodes := nodesOf(out); nodes[0] == "n00000" || len(nodes) != 3 {
		t.Errorf("placed on %v: the first instance avoids n00000", nodes)
	}
}

// Without the columns, or for a system job, nothing is played.
func TestLookAhead_IsOptIn(t *testing.T) {
	for name, c := range map[string]struct {
		more sdk.Columns
		job  *model.Job
	}{
		"without columns": {0, coretest.PreemptingJob(3).Obj()},
		"system job":      {sdk.LookAheadColumns, coretest.PreemptingJob(1).Change(func(j *model.Job) { j.Type = model.JobSystem }).Obj()},
	} {
		p := &player{fuel: 100}
		if processAhead(t, p, c.more, c.job); len(p.plans) > 0 {
			t.Errorf("%s: %d plays", name, len(p.plans))
		}
	}
}
