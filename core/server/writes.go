package server

import (
	"context"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// What many callers want written at a time, made into few entries.

// evalWriter writes what workers make of evaluations.
type evalWriter struct{ s *Server }

var _ worker.Evals = evalWriter{}

// WriteEvals writes evaluations, together with those of other workers.
func (w evalWriter) WriteEvals(ctx context.Context, evals ...*model.Evaluation) error {
	result, err := w.s.evals.add(ctx, evals)
	if err != nil {
		return err
	}
	return refusal(result)
}

func (s *Server) writeEvals(ctx context.Context, parts [][]*model.Evaluation) (*replication.Result, error) {
	return s.commit(ctx, &replication.WriteEvals{Evals: slices.Concat(parts...)})
}

func (s *Server) writeNodes(ctx context.Context, nodes []*model.Node) (*replication.Result, error) {
	return s.commit(ctx, &replication.RegisterNodes{Nodes: lastOfEach(nodes)})
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
	return s.commit(ctx, &replication.ChangeNodes{IDs: slices.Compact(ids), Change: state.NodeChange{Status: &ready}})
}

func (s *Server) writeUpdates(ctx context.Context, parts [][]state.ClientUpdate) (*replication.Result, error) {
	return s.commit(ctx, &replication.UpdateAllocs{Updates: slices.Concat(parts...)})
}
