package replication

import (
	"fmt"
	"log/slog"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// What servers send each other outside the log is written down as in the log.

// EncodeEvals writes evaluations down for another server.
func EncodeEvals(evals []*model.Evaluation) []byte {
	return Encode(&Entry{Command: &WriteEvals{Evals: evals}})
}

// DecodeEvals reads what EncodeEvals wrote. It fails as Decode does.
func DecodeEvals(b []byte) ([]*model.Evaluation, error) {
	e, err := Decode(b)
	if err != nil {
		return nil, err
	}
	c, ok := e.Command.(*WriteEvals)
	if !ok {
		return nil, notUnderstood("evaluations are of kind %d", e.Command.command())
	}
	return c.Evals, nil
}

// EncodePlan writes a plan down for another server, with all of its groups.
func EncodePlan(p *model.Plan) []byte {
	groups := make([]int, len(p.Groups))
	for i := range groups {
		groups[i] = i
	}
	return Encode(&Entry{Command: &ApplyPlans{Batch: &apply.Batch{Now: p.Now, Plans: []apply.BatchPlan{{Plan: p, Groups: groups}}}}})
}

// DecodePlan reads what EncodePlan wrote. Its jobs are references before BindPlan
// has put in what they refer to. It fails as Decode does.
func DecodePlan(b []byte) (*model.Plan, error) {
	e, err := Decode(b)
	if err != nil {
		return nil, err
	}
	c, ok := e.Command.(*ApplyPlans)
	if !ok || c.Batch == nil || len(c.Batch.Plans) != 1 {
		return nil, notUnderstood("a plan is of kind %d", e.Command.command())
	}
	return c.Batch.Plans[0].Plan, nil
}

// BindPlan puts the versions of jobs, as a state has them, in place of the
// references of a plan that was read. The state is at least at the plan's
// snapshot. It fails where a version is not known any more: the plan is out of
// date.
func BindPlan(p *model.Plan, snap *state.Snapshot) error {
	versions := map[*model.Job]*model.Job{}
	for i := range p.Groups {
		for _, list := range [][]*model.Allocation{p.Groups[i].Placements, p.Groups[i].Updates} {
			for _, alloc := range list {
				ref := alloc.Job
				job, ok := versions[ref]
				if !ok {
					job = versionIn(snap, ref)
					versions[ref] = job
				}
				if place(alloc, job); alloc.Group == nil {
					return fmt.Errorf("version %d of job %s is not known any more, or has not the plan's groups", ref.ModifyIndex, ref.Key())
				}
			}
		}
	}
	return nil
}

// versionIn is the version of a job that a reference names; nil when it is gone.
func versionIn(snap *state.Snapshot, ref *model.Job) *model.Job {
	for _, j := range snap.JobVersions(ref.Key()) {
		if j.ModifyIndex == ref.ModifyIndex {
			return j
		}
	}
	for _, alloc := range snap.AppendJobAllocs(nil, ref.Key()) {
		if alloc.Job.ModifyIndex == ref.ModifyIndex {
			return alloc.Job
		}
	}
	return nil
}

// RaftLogger has what belongs to Raft speak through a logger.
func RaftLogger(log *slog.Logger) hclog.Logger { return raftLogger(log) }

// Recover gives a cluster that lost its quorum another list of servers, on one
// server that is stopped. All that its log holds counts as committed from then on,
// so it is done on one server, the one that is furthest along. Of the
// configuration, what Open needs must be there; Transport may be nil.
func Recover(cfg Config, servers []raft.Server) error {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conf := cfg.Timing.raft()
	conf.LocalID = raft.ServerID(cfg.ServerID)
	conf.Logger = raftLogger(log)
	transport := cfg.Transport
	if transport == nil {
		_, memory := raft.NewInmemTransport("recovery")
		defer func() { _ = memory.Close() }() // nobody is connected
		transport = memory
	}
	err := raft.RecoverCluster(conf, newFSM(&cfg, log), cfg.Log, cfg.Stable, cfg.Snapshots, transport, raft.Configuration{Servers: servers})
	if err != nil {
		return fmt.Errorf("recover the cluster: %w", err)
	}
	return nil
}
