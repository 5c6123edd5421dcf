package endpoint

import (
	"context"
	"fmt"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// SchedulerConfig changes the configuration of the scheduler, and reports the state of
// the evaluation broker.
type SchedulerConfig struct {
	writer   *logwriter.Writer
	policies scheduler.Policies
	broker   *broker.Broker
	blocked  *broker.Blocked
}

// SetConfig replaces the scheduler configuration. check is the ModifyIndex that it must
// have; nil: any. It returns the index of the entry, also of one that the check refused.
func (e *SchedulerConfig) SetConfig(ctx context.Context, c *model.SchedulerConfig, check *uint64) (uint64, error) {
	config := *c
	if err := invalid(e.normalize(&config), "scheduler configuration"); err != nil {
		return 0, err
	}
	return e.writer.CommitIndex(ctx, &replication.SetConfig{Config: &config, Check: check})
}

// normalize sets the canonical spelling of the algorithm, and returns all problems.
func (e *SchedulerConfig) normalize(c *model.SchedulerConfig) []string {
	var problems []string
	var err error
	if c.Algorithm, err = model.ParseAlgorithm(string(c.Algorithm)); err != nil {
		problems = append(problems, err.Error())
	}
	if c.PriorityDelta != nil && *c.PriorityDelta < 0 {
		problems = append(problems, fmt.Sprintf("priority delta must not be negative: %d", *c.PriorityDelta))
	}
	if m := c.Moves; m != nil && (m.Number < 1 || m.Window <= 0) {
		problems = append(problems, fmt.Sprintf("invalid moves: %d in %s: the number must be 1 or more, and the window above 0", m.Number, m.Window))
	}
	if c.Observe[model.JobBinding] {
		problems = append(problems, "preemption of bindings cannot be observed: it must be on or off")
	}
	if _, err := policy.ParseOnFault(c.OnFault); err != nil {
		problems = append(problems, err.Error())
	}
	if c.Policy != "" {
		set := e.policies.Pin()
		defer set.Unpin()
		if _, err := set.Select(c.Policy, ""); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// PauseBroker stops the delivery of evaluations, on whichever server leads.
func (e *SchedulerConfig) PauseBroker(ctx context.Context) (uint64, error) {
	return e.setPaused(ctx, true)
}

// ResumeBroker ends PauseBroker.
func (e *SchedulerConfig) ResumeBroker(ctx context.Context) (uint64, error) {
	return e.setPaused(ctx, false)
}

// setPaused writes nothing if the broker is paused or not as requested: a write of the
// configuration unblocks evaluations and invalidates plans.
func (e *SchedulerConfig) setPaused(ctx context.Context, paused bool) (uint64, error) {
	if c := e.writer.Snapshot().Config(); c.BrokerPaused == paused {
		return c.ModifyIndex, e.writer.CheckLeader()
	}
	return e.UpdateConfig(ctx, nil, func(c *model.SchedulerConfig) error {
		c.BrokerPaused = paused
		return nil
	})
}

// UpdateConfig changes the scheduler configuration. change receives a copy of the current
// one, without its slices and pointers, and is called again if the configuration changes
// before it is written: concurrent changes of different fields are all retained. check is the
// ModifyIndex that the configuration must have; nil: any. If that check fails, UpdateConfig
// returns a conflict with the index at which it failed.
func (e *SchedulerConfig) UpdateConfig(ctx context.Context, check *uint64, change func(*model.SchedulerConfig) error) (index uint64, err error) {
	const tries = 10
	var config model.SchedulerConfig
	for range tries {
		if err = e.writer.CheckLeader(); err != nil {
			return 0, err
		}
		if config, index, err = e.configAt(ctx, check); err != nil {
			return index, err
		}
		current := config.ModifyIndex
		if err = change(&config); err != nil {
			return 0, err
		}
		index, err = e.SetConfig(ctx, &config, &current)
		if err == nil || check != nil || apierror.CodeOf(err) != apierror.CodeConflict {
			return index, err
		}
	}
	return index, err
}

// configAt returns a copy of the scheduler configuration, and the index of the state. It
// returns a conflict if the configuration has another ModifyIndex than check. Without that,
// a change of an older version could pass the check of the log: a caller may know an index
// from a server that applies entries faster than this one.
func (e *SchedulerConfig) configAt(ctx context.Context, check *uint64) (config model.SchedulerConfig, index uint64, err error) {
	err = e.writer.Check(ctx, func(snap *state.Snapshot) error {
		config, index = *snap.Config(), snap.Index()
		if check != nil && config.ModifyIndex != *check {
			return apierror.New(apierror.CodeConflict, "the scheduler configuration was changed: it is at index %d, want %d", config.ModifyIndex, *check)
		}
		return nil
	})
	return config, index, err
}

// BrokerStats returns counts of evaluations. On a server that does not lead the broker is
// empty and disabled.
func (e *SchedulerConfig) BrokerStats() (broker.Stats, broker.BlockedStats) {
	return e.broker.Stats(), e.blocked.Stats()
}
