package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/rebalance"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// rebalanceTokenPrefix starts the tokens of rebalancing; its number is the version of the
// format.
const rebalanceTokenPrefix = "cede_rebalance1."

// movesFrom is the first cluster version with moves.
const movesFrom = 2

// A PlanQueue commits plans on the leader, after it has verified them against the newest
// state.
type PlanQueue interface {
	Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error)
}

// Rebalance moves instances to make room for jobs that wait, on request. It works whether
// or not moves are enabled, under a limit of its own.
type Rebalance struct {
	writer     *logwriter.Writer
	policies   scheduler.Policies
	jobs       *Jobs
	plans      PlanQueue
	newAllocID func(*model.Group, int, int) string
	key        planKey
}

// A Rebalancing is a proposal to move instances.
type Rebalancing struct {
	Token   string // commits exactly this; "" if nothing is moved
	Index   uint64 // of the state that it was planned on
	Expires time.Time
	Moves   model.Rate // the limit per job
	Steps   []rebalance.Step
	Omitted int // waiting jobs that were not considered
}

// A RebalanceOutcome is the result of one step.
type RebalanceOutcome struct {
	Job           model.JobKey
	Placed, Moved int
	Rejected      []string // reasons for which parts of it were not done
	EvalID        string   // of the evaluation of the job that follows; "": nothing was committed
}

// rebalanceHead is the part of a token besides the plans.
type rebalanceHead struct{ Moves model.Rate }

// defaultMoves is the limit if neither the caller nor the configuration has one.
var defaultMoves = model.Rate{Number: 1, Window: time.Hour}

// PlanRebalance returns the moves that would make room for jobs that wait, and changes
// nothing. If moves is nil, the limit of the configuration applies, or one move per job and
// hour.
func (e *Rebalance) PlanRebalance(_ context.Context, moves *model.Rate) (*Rebalancing, error) {
	snap, now := e.writer.Snapshot(), e.writer.Now()
	if err := checkMoves(snap, moves); err != nil {
		return nil, err
	}
	r := &Rebalancing{Index: snap.Index(), Moves: defaultMoves}
	switch configured := snap.Config().Moves; {
	case moves != nil:
		r.Moves = *moves
	case configured != nil:
		r.Moves = *configured
	}
	set := e.policies.Pin()
	defer set.Unpin()
	var err error
	r.Steps, r.Omitted, err = rebalance.Plan(rebalance.Input{Snapshot: snap, Policies: set, NewID: e.newAllocID, Now: now, Moves: r.Moves})
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "cannot plan moves: %v", err)
	}
	if len(r.Steps) > 0 {
		r.Expires, r.Token = time.Unix(0, now).Add(planTTL), e.seal(now, r)
	}
	return r, nil
}

// checkMoves returns an error if a limit is invalid, or a server of the pool may be too old
// for moves.
func checkMoves(snap *state.Snapshot, moves *model.Rate) error {
	if moves != nil && (moves.Number < 1 || moves.Window <= 0) {
		return apierror.New(apierror.CodeInvalid, "invalid moves: %d in %s: the number must be 1 or more, and the window above 0", moves.Number, moves.Window)
	}
	if v := snap.Meta().Version; v < movesFrom {
		return apierror.New(apierror.CodeConflict, "cannot move instances: the cluster is at version %d, and moves require %d", v, movesFrom).
			WithHint("upgrade every server first")
	}
	return nil
}

// seal returns the token of a proposal: its plans in one entry, which is never written.
func (e *Rebalance) seal(now int64, r *Rebalancing) string {
	batch := &apply.Batch{Now: now}
	for i := range r.Steps {
		plan := r.Steps[i].Plan
		groups := make([]int, len(plan.Groups))
		for k := range groups {
			groups[k] = k
		}
		batch.Plans = append(batch.Plans, apply.BatchPlan{Plan: plan, Groups: groups})
	}
	head, _ := json.Marshal(rebalanceHead{r.Moves}) // numbers only: cannot fail
	return e.key.pack(rebalanceTokenPrefix, head, codec.Encode(&replication.Entry{Time: now, Command: &replication.ApplyPlans{Batch: batch}}))
}

// open returns the plans in a token, and when they were made.
func (e *Rebalance) open(token string) (at int64, plans []*model.Plan, err error) {
	invalid := func(reason string) error { return invalidToken("cede rebalance --plan", reason) }
	head, raw, reason := e.key.unpack(rebalanceTokenPrefix, token)
	if reason != "" {
		return 0, nil, invalid(reason)
	}
	var h rebalanceHead
	entry, err := codec.Decode(raw)
	if err != nil || json.Unmarshal(head, &h) != nil {
		return 0, nil, invalid("made by another release of the server")
	}
	c, ok := entry.Command.(*replication.ApplyPlans)
	if !ok || c.Batch == nil || len(c.Batch.Plans) == 0 {
		return 0, nil, invalid("contains no plan")
	}
	for _, p := range c.Batch.Plans {
		p.Plan.Moves = &h.Moves
		plans = append(plans, p.Plan)
	}
	return entry.Time, plans, nil
}

// RunRebalance commits the steps of a token, one after the other. Each commit group of a step
// is committed as a whole or not at all: a group that no longer holds is reported, and moves
// nothing. It returns a conflict if no step holds. If a step fails after others were
// committed, the outcomes report it, and the steps after it are not tried.
func (e *Rebalance) RunRebalance(ctx context.Context, token string) ([]RebalanceOutcome, uint64, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, 0, err
	}
	at, plans, err := e.open(token)
	if err != nil {
		return nil, 0, err
	}
	if age := time.Duration(e.writer.Now() - at); age > planTTL {
		return nil, 0, planConflict([]string{fmt.Sprintf("it was made %v ago and is valid for %v", age.Round(time.Second), planTTL)})
	}
	var list []RebalanceOutcome
	var reasons []string
	index := uint64(0)
	for i, plan := range plans {
		out, committed, err := e.commit(ctx, plan)
		index = max(index, committed)
		if err != nil && index == 0 {
			return nil, 0, err
		}
		if err != nil { // an error alone would hide what is committed
			out.Rejected = append(out.Rejected, reason(err))
			list = append(list, out)
			for _, rest := range plans[i+1:] {
				list = append(list, RebalanceOutcome{Job: rest.Job, Rejected: []string{"not tried, because a step before it failed"}})
			}
			return list, index, nil
		}
		for _, r := range out.Rejected {
			if !slices.Contains(reasons, r) { // steps that move one job share it
				reasons = append(reasons, r)
			}
		}
		list = append(list, out)
	}
	if index == 0 {
		return nil, 0, planConflict(reasons)
	}
	return list, index, nil
}

// commit commits one step, and evaluates its job again: the evaluation that waits does not
// know that its instances are placed. If it commits the step and then fails, it returns the
// index of the step with the error.
func (e *Rebalance) commit(ctx context.Context, plan *model.Plan) (out RebalanceOutcome, index uint64, err error) {
	snap := e.writer.Snapshot()
	bound := *plan
	bound.Groups = bindGroups(plan.Groups, &model.Job{}, snap)
	out.Job = plan.Job
	for i := range bound.Groups {
		for _, a := range bound.Groups[i].Placements {
			// A job that was removed and registered again has the same version numbers.
			if now := snap.Job(a.Job.Key()); now != nil && now.ModifyIndex != a.Job.ModifyIndex {
				out.Rejected = append(out.Rejected, fmt.Sprintf("job %s has changed", now.Key()))
				return out, 0, nil
			}
		}
	}
	nodes := newNodeRecheck(snap)
	bound.Groups = slices.DeleteFunc(bound.Groups, func(g model.CommitGroup) bool {
		why := cmp.Or(nodes.reason(&g), changedSource(snap, &g, plan.SnapshotIndex))
		if why != "" {
			out.Rejected = append(out.Rejected, why)
		}
		return why != ""
	})
	if len(bound.Groups) == 0 {
		return out, 0, nil
	}
	result, err := e.plans.Submit(ctx, &bound)
	if err != nil {
		if errors.Is(err, planner.ErrUnknownOutcome) {
			err = fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, err)
		}
		if lost := e.writer.CheckLeader(); lost != nil && !errors.Is(err, replication.ErrUnknownOutcome) {
			return out, 0, lost
		}
		return out, 0, e.writer.Unwritten(err)
	}
	for _, r := range result.Rejected {
		out.Rejected = append(out.Rejected, r.String())
	}
	for _, i := range result.Committed {
		for _, a := range bound.Groups[i].Placements {
			if e.writer.Snapshot().Alloc(a.ID) == nil {
				continue
			}
			if a.MovedFrom == "" {
				out.Placed++
			} else {
				out.Moved++
			}
		}
	}
	if out.Placed+out.Moved == 0 {
		return out, 0, nil
	}
	registered, err := e.jobs.Evaluate(ctx, plan.Job)
	if err != nil {
		return out, result.Index, fmt.Errorf("the job is not evaluated again: %s", reason(err))
	}
	out.EvalID = registered.EvalID
	return out, max(result.Index, registered.Index), nil
}

// reason returns the text of an error without its hint, which is about the whole request.
func reason(err error) string {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return e.Message
	}
	return err.Error()
}
