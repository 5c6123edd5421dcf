package policymgr

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/trial"
)

// Conditions evaluates the conditions of trials. It is safe for concurrent use.
type Conditions interface {
	// Check returns the measures that a condition reads, or an error for its author.
	Check(condition string) (measures []string, err error)
	// Holds evaluates a condition that Check accepted, and returns the values that it read.
	Holds(condition string, s *trial.Summary) (holds bool, reason string, err error)
}

// Limits and defaults of trials.
const (
	maxTrial     = 30 * 24 * time.Hour
	washoutShare = 6 // a block's share that is not measured by default
)

// A TrialRequest describes a trial in which a version and the active one alternate.
type TrialRequest struct {
	For     time.Duration
	Block   time.Duration
	Washout time.Duration // 0: a sixth of a block
	Seed    uint64        // of the random order; 0: derived from the time
	// StopIf rolls back as soon as it holds, and PromoteIf ends the trial with the version
	// active. "": never. If both hold, StopIf prevails.
	StopIf, PromoteIf string
}

// StartTrial compares a version of a policy with the active one: both decide in alternate
// blocks of time, in random order, until a condition holds or the time is over. Every
// required server must have checked the version.
func (p *Policies) StartTrial(ctx context.Context, name, version string, r TrialRequest) (index uint64, err error) {
	v, err := p.m.changeableVersion(name, version)
	if err != nil {
		return 0, err
	}
	if err := p.m.checkActivatable(v); err != nil {
		return 0, err
	}
	plan, err := p.m.trials.plan(&r, p.m.cfg.Clock.Now().UnixNano())
	if err != nil {
		return 0, err
	}
	return p.m.change(ctx, &replication.ChangePolicy{
		Name: name, Op: replication.OpTrial, Version: v.ID, Until: p.m.cfg.Clock.Now().Add(r.For).UnixNano(), Trial: plan,
	})
}

// trials evaluates trials with blocks. plan, summaries and courses are safe for concurrent use;
// next is called by Manager.Run only.
type trials struct {
	conditions Conditions // nil: they never hold
	logger     *slog.Logger
	summaries  summaries
	courses    courses
	evaluated  map[string]evaluatedTrial // by policy
}

func newTrials(c Conditions, logger *slog.Logger) *trials {
	return &trials{c, logger, summaries{byName: map[string]summaryOf{}}, courses{byMeasure: map[courseKey]courseOf{}}, map[string]evaluatedTrial{}}
}

// plan returns the plan of a trial that starts now, in Unix nanoseconds. It returns an
// error that lists all problems of the request.
func (x *trials) plan(r *TrialRequest, now int64) (*model.TrialPlan, error) {
	if r.Washout == 0 {
		r.Washout = r.Block / washoutShare
	}
	var problems []string
	reject := func(problem string) { problems = append(problems, problem) }
	if r.For <= 0 || r.For > maxTrial {
		reject("For must be positive and at most 30 days")
	}
	switch {
	case int64(r.Block) < model.MinTrialBlock:
		reject("Block must be at least " + time.Duration(model.MinTrialBlock).String())
	case 2*r.Block > r.For:
		reject("For must contain at least two blocks")
	case int64(r.For/r.Block) > model.MaxTrialBlocks:
		reject("For must contain at most 1000 blocks")
	}
	if r.Washout < 0 || r.Washout > 0 && r.Washout >= r.Block {
		reject("Washout must be shorter than Block")
	}
	measures := map[string]bool{}
	for _, c := range [][2]string{{"StopIf", r.StopIf}, {"PromoteIf", r.PromoteIf}} {
		if c[1] == "" || x.conditions == nil {
			continue
		}
		read, err := x.conditions.Check(c[1])
		if err != nil {
			reject(c[0] + ": " + err.Error())
		}
		for _, name := range read {
			measures[name] = true
		}
	}
	if r.StopIf == "" && r.PromoteIf == "" {
		reject("StopIf or PromoteIf is required: without a condition, the trial decides nothing")
	}
	if len(problems) > 0 {
		return nil, apierror.New(apierror.CodeInvalid, "invalid trial: %s", strings.Join(problems, "; ")).WithHint("see: cede help policy trial")
	}
	seed := r.Seed
	if seed == 0 {
		seed = uint64(now)
	}
	return &model.TrialPlan{
		Block: int64(r.Block), Washout: int64(r.Washout), Seed: seed, StopIf: r.StopIf, PromoteIf: r.PromoteIf, Measures: int32(len(measures)),
	}, nil
}

// next returns the change that ends the trial of a policy, if a condition holds or its time
// is over, or the block of the trial t; nil if none is due at a time in Unix nanoseconds. t may
// have ended.
func (x *trials) next(ctx context.Context, s *model.PolicyState, t *model.PolicyTrial, now int64) *replication.ChangePolicy {
	if t.Running() {
		if change := x.verdict(ctx, t); change != nil {
			return change
		}
		if t.BlockEnd() <= now && len(t.Blocks) < model.MaxTrialBlocks {
			return &replication.ChangePolicy{Op: replication.OpBlock, Until: t.BlockEnd()}
		}
	}
	if s.Until == 0 || expiry(t, s.Until) > now {
		return nil
	}
	x.logger.InfoContext(ctx, "policy trial ended", "policy", s.Name, "version", s.Active)
	return &replication.ChangePolicy{Op: replication.OpRollback, Until: s.Until}
}

// expiry returns the time at which a trial that is limited to until ends without a verdict.
// Each block starts with its entry, so that N blocks last some milliseconds longer than N
// times their length: the trial ends with its current block if less than half of the
// block is left.
func expiry(t *model.PolicyTrial, until int64) int64 {
	if t.Running() && t.BlockEnd() > until && t.BlockEnd()-until < t.Plan.Block/2 {
		return t.BlockEnd()
	}
	return until
}

// verdict returns the change that the conditions of a trial require, or nil if none of
// them holds. It depends on the state alone, so every leader comes to the same verdict.
// Conditions are evaluated once per pair of blocks.
func (x *trials) verdict(ctx context.Context, t *model.PolicyTrial) *replication.ChangePolicy {
	evaluated := evaluatedTrial{t.Start, len(t.Blocks)}
	if len(t.Blocks) == 0 || len(t.Blocks)%2 == 1 || x.evaluated[t.Name] == evaluated || x.conditions == nil {
		return nil
	}
	summary := x.summaries.of(t)
	for _, c := range []struct {
		condition string
		change    replication.ChangePolicy
	}{
		{t.Plan.StopIf, replication.ChangePolicy{Op: replication.OpRollback, Until: t.Until}},
		{t.Plan.PromoteIf, replication.ChangePolicy{Op: replication.OpActivate, Version: t.Candidate}},
	} {
		if c.condition == "" {
			continue
		}
		holds, reason, err := x.conditions.Holds(c.condition, summary)
		if err != nil {
			x.logger.WarnContext(ctx, "failed to evaluate condition of policy trial", "policy", t.Name, "condition", c.condition, "err", err)
		}
		if holds {
			x.logger.InfoContext(ctx, "policy trial decided", "policy", t.Name, "version", t.Candidate, "change", c.change.Op.String(), "reason", reason)
			c.change.Reason = reason
			return &c.change
		}
	}
	x.evaluated[t.Name] = evaluated
	return nil
}

// evaluatedTrial identifies the newest pair of blocks of a trial.
type evaluatedTrial struct {
	start  int64
	blocks int
}

// summaries holds the summary of the newest trial of each policy: it costs some
// milliseconds, and changes at the end of a pair of blocks only.
type summaries struct {
	mu     sync.Mutex
	byName map[string]summaryOf
}

type summaryOf struct {
	blocks  evaluatedTrial
	summary *trial.Summary
}

// of returns the summary of a trial. It is shared and read-only.
func (s *summaries) of(t *model.PolicyTrial) *trial.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := evaluatedTrial{t.Start, len(t.Blocks)}
	held, ok := s.byName[t.Name]
	if !ok || held.blocks != blocks {
		held = summaryOf{blocks, trial.Summarize(t)}
		s.byName[t.Name] = held
	}
	return held.summary
}

// maxPoints bounds the points of a course: each costs as much as a verdict.
const maxPoints = 40

// courses holds the courses of measures that were requested. One is computed at a time,
// however many callers request it.
type courses struct {
	mu        sync.Mutex
	byMeasure map[courseKey]courseOf
}

type courseKey struct{ policy, measure string }

type courseOf struct {
	blocks evaluatedTrial
	course *trial.Course
}

// of returns the course of a measure, or nil if the measure is unknown. It is shared and
// read-only.
func (s *courses) of(t *model.PolicyTrial, measure string) *trial.Course {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, blocks := courseKey{t.Name, measure}, evaluatedTrial{t.Start, len(t.Blocks)}
	held, ok := s.byMeasure[key]
	if !ok || held.blocks != blocks {
		course := trial.CourseOf(t, measure, maxPoints)
		if course == nil {
			return nil
		}
		held = courseOf{blocks, course}
		s.byMeasure[key] = held
	}
	return held.course
}

// TrialCourse returns the trial with blocks of a policy, in progress or the last one, with
// its summary and the history of a measure.
func (p *Policies) TrialCourse(ctx context.Context, name, measure string) (*Status, *trial.Course, error) {
	status, err := p.PolicyStatus(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if status.Trial == nil {
		return nil, nil, apierror.New(apierror.CodeNotFound, "policy %q had no trial with blocks", name).WithHint("start one: PUT /v1/policy/%s/trial", name)
	}
	course := p.m.trials.courses.of(status.Trial, measure)
	if course == nil {
		return nil, nil, apierror.New(apierror.CodeInvalid, "trials do not measure %q", measure).WithHint("the metrics are %s", strings.Join(trial.Names(), ", "))
	}
	return status, course, nil
}
