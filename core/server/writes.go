package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// What many callers want written at a time, made into few entries.

// endings is what came of a delivery.
type endings struct {
	term  uint64 // in which it is good
	evals []*model.Evaluation
}

// endings are evaluations that are good in the term that there is.
func (s *Server) endings(evals ...*model.Evaluation) endings {
	return endings{term: s.cfg.Log.Term(), evals: evals}
}

// writeEndings writes what came of a delivery, together with what came of others.
//
// Only who has the delivery may write, and nobody else gets it before that is done: a
// worker that lost it may have looked at an older state than the one that has it now, and
// "everything is placed" as of then would end who waits for what came since.
func (s *Server) writeEndings(ctx context.Context, evalID string, token broker.Token, evals []*model.Evaluation) error {
	e := s.endings(evals...) // before the lease: that is of this term, or void
	if err := s.broker.PauseTimer(evalID, token); err != nil {
		return err
	}
	defer func() { _ = s.broker.ResumeTimer(evalID, token) }() // a lease that is lost stays lost
	result, err := s.evals.Add(ctx, e)
	if err != nil {
		return err
	}
	return logwriter.Refusal(result)
}

// writeEvals writes endings in the term in which they are good, and in no other.
func (s *Server) writeEvals(ctx context.Context, parts []endings) (*replication.Result, error) {
	now := s.cfg.Log.Term()
	var evals []*model.Evaluation
	for _, e := range parts {
		if e.term != now {
			lost := apierror.New(apierror.CodeNoLeader, "the lead changed before the evaluations were written: nothing was done")
			lost.Err = fmt.Errorf("%w: it was %d, now it is %d", errOutOfOffice, e.term, now)
			return nil, lost.WithHint("try again in a moment")
		}
		evals = append(evals, e.evals...)
	}
	return s.writer.Propose(ctx, &replication.WriteEvals{Evals: evals})
}

func (s *Server) writeNodes(ctx context.Context, nodes []*model.Node) (*replication.Result, error) {
	return s.writer.Propose(ctx, &replication.RegisterNodes{Nodes: lastOfEach(nodes)})
}

// lastOfEach drops what a later registration of the same node replaces.
func lastOfEach(nodes []*model.Node) []*model.Node {
	last := make(map[string]int, len(nodes))
	for i, n := range nodes {
		last[n.ID] = i
	}
	if len(last) == len(nodes) {
		return nodes
	}
	var kept []*model.Node
	for i, n := range nodes {
		if last[n.ID] == i {
			kept = append(kept, n)
		}
	}
	return kept
}

func (s *Server) writeReturns(ctx context.Context, ids []string) (*replication.Result, error) {
	ready := model.NodeReady
	slices.Sort(ids)
	return s.writer.Propose(ctx, &replication.ChangeNodes{IDs: slices.Compact(ids), Change: apply.NodeChange{Status: &ready}})
}

func (s *Server) writeUpdates(ctx context.Context, parts [][]apply.ClientUpdate) (*replication.Result, error) {
	return s.writer.Propose(ctx, &replication.UpdateAllocs{Updates: slices.Concat(parts...)})
}
