package lookahead

import (
	"context"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/state"
)

// Horizon is how far a play looks ahead at most.
const Horizon = 10 * time.Minute

// Fuel is counted in nodes: an evaluation that is played costs the nodes of the cluster,
// minNodes at least. Plays of one evaluation cost about as much on small clusters as on
// large ones, and time does not matter, so that every machine plays the same.
const (
	playFuel       = 40_000       // of one play
	evaluationFuel = 8 * playFuel // of all plays of an evaluation
	minNodes       = 1_000
)

// NewScheduler returns a scheduler with look-ahead for policies. Plays call the policies of
// the evaluation.
func NewScheduler(c scheduler.Config) *scheduler.Scheduler {
	return NewSchedulerWith(c, nil)
}

// NewSchedulerWith is NewScheduler with other policies for plays, such as copies without a
// recorder; nil selects those of the evaluation. They must give the same answers.
func NewSchedulerWith(c scheduler.Config, plays *policy.Set) *scheduler.Scheduler {
	c.Player = newPlayer(plays, c)
	return scheduler.New(c)
}

// A Player plays one plan after another. It reuses its scheduler and its view of the last
// snapshot.
type Player struct {
	override  *policy.Set // for plays; nil: that of the evaluation
	set       *policy.Set // of the current play
	scheduler *scheduler.Scheduler
	outlook   outlook
}

var _ placement.Player = (*Player)(nil)

func newPlayer(override *policy.Set, c scheduler.Config) *Player {
	p := &Player{override: override}
	p.scheduler = scheduler.New(scheduler.Config{
		// Failures are not cached: they are those of states that were only played.
		Policies: p, Ties: c.Ties, Workers: c.Workers, NoDomainSearch: c.NoDomainSearch, Forget: true, Hypothetical: true,
	})
	return p
}

// Pin returns the policies of the current play.
func (p *Player) Pin() *policy.Set { return p.set.Pin() }

// Fuel returns the total cost that the plays of one evaluation may have.
func (p *Player) Fuel(*state.Snapshot) int { return evaluationFuel }

// Play plays a plan. A plan that cannot be committed, or an evaluation that cannot be
// planned, ends the play: the result counts the evictions before.
func (p *Player) Play(base *state.Snapshot, eval *model.Evaluation, set *policy.Set, plan *model.Plan) (model.Outlook, int) {
	if p.set = p.override; p.set == nil {
		p.set = set
	}
	p.outlook.read(base, plan.Now)
	g := newGame(p, base, plan.Now)
	g.play(context.Background(), eval, plan)
	return g.ledger.outlook(g.horizon), playFuel - g.fuel
}
