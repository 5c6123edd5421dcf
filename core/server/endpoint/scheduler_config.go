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
// have; nil: any.
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

// setPaused changes one field, and retries if the configuration changes meanwhile.
func (e *SchedulerConfig) setPaused(ctx context.Context, paused bool) (uint64, error) {
	const tries = 5
	var err error
	for range tries {
		config := *e.writer.Snapshot().Config()
		if config.BrokerPaused == paused {
			return config.ModifyIndex, nil
		}
		check := config.ModifyIndex
		config.BrokerPaused = paused
		var index uint64
		index, err = e.writer.CommitIndex(ctx, &replication.SetConfig{Config: &config, Check: &check})
		if apierror.CodeOf(err) != apierror.CodeConflict || err == nil {
			return index, err
		}
	}
	return 0, err
}

// BrokerStats returns counts of evaluations. On a server that does not lead the broker is
// empty and disabled.
func (e *SchedulerConfig) BrokerStats() (broker.Stats, broker.BlockedStats) {
	return e.broker.Stats(), e.blocked.Stats()
}
