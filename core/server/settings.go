package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// SetConfig replaces what operators set. check is the ModifyIndex that it must
// have; nil: any.
func (s *Server) SetConfig(ctx context.Context, c *model.SchedulerConfig, check *uint64) (uint64, error) {
	config := *c
	if problems := s.configProblems(&config); len(problems) > 0 {
		return 0, apierror.New(apierror.CodeInvalid, "scheduler configuration: %s", strings.Join(problems, "; ")).
			WithDetails(map[string]any{"Problems": problems})
	}
	return s.writer.CommitIndex(ctx, &replication.SetConfig{Config: &config, Check: check})
}

// configProblems also puts the algorithm in its canonical spelling.
func (s *Server) configProblems(c *model.SchedulerConfig) []string {
	var problems []string
	var err error
	if c.Algorithm, err = model.ParseAlgorithm(string(c.Algorithm)); err != nil {
		problems = append(problems, err.Error())
	}
	if c.PriorityDelta != nil && *c.PriorityDelta < 0 {
		problems = append(problems, fmt.Sprintf("the priority delta %d is negative", *c.PriorityDelta))
	}
	if _, err := policy.ParseOnFault(c.OnFault); err != nil {
		problems = append(problems, err.Error())
	}
	if c.Policy != "" {
		set := s.policies.Pin()
		defer set.Unpin()
		if _, err := set.Select(c.Policy, ""); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// PauseBroker keeps evaluations from being handed out, on whichever server leads.
func (s *Server) PauseBroker(ctx context.Context) (uint64, error) { return s.setPaused(ctx, true) }

// ResumeBroker ends PauseBroker.
func (s *Server) ResumeBroker(ctx context.Context) (uint64, error) { return s.setPaused(ctx, false) }

func (s *Server) setPaused(ctx context.Context, paused bool) (uint64, error) {
	const tries = 5
	var err error
	for range tries {
		config := *s.Snapshot().Config()
		if config.BrokerPaused == paused {
			return config.ModifyIndex, nil
		}
		check := config.ModifyIndex
		config.BrokerPaused = paused
		var index uint64
		index, err = s.writer.CommitIndex(ctx, &replication.SetConfig{Config: &config, Check: &check})
		if apierror.CodeOf(err) != apierror.CodeConflict || err == nil {
			return index, err
		}
	}
	return 0, err
}

// BrokerStats is how the broker stands. On a server that does not lead it is
// empty and disabled.
func (s *Server) BrokerStats() (broker.Stats, broker.BlockedStats) {
	return s.broker.Stats(), s.blocked.Stats()
}

// Where finds an evaluation in the broker, for people who wonder why it does not
// run.
func (s *Server) Where(evalID string) broker.Location { return s.broker.Locate(evalID) }
