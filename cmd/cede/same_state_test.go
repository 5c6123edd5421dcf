package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// This file compares the states of the servers of a pool.

// waitSameState waits until the states of all servers are identical. If they are not, it logs
// the status of each server, how their states differ, and which goroutines are blocked.
func (p *processPool) waitSameState() {
	p.t.Helper()
	statuses := make([]string, len(p.servers))
	defer func() {
		if p.t.Failed() {
			p.t.Logf("status of the servers:\n%s", strings.Join(statuses, "\n"))
			p.logDifferences()
			p.logBlocked()
		}
	}()
	var states []string
	eventually(p.t, "all servers have the same state", func() bool {
		states = nil
		for i, s := range p.servers {
			st, err := s.statusWithHash()
			if err != nil {
				statuses[i] = fmt.Sprintf("%s: no status at %v: %v", s.name, time.Now().Format(time.StampMicro), err)
				continue
			}
			states = append(states, fmt.Sprintf("%d %s", st.StateIndex, st.StateHash))
			statuses[i] = fmt.Sprintf("%s: %s in term %d, log ends at %d, committed %d, applied %d, state %d %s",
				s.name, st.State, st.Term, st.LastIndex, st.CommitIndex, st.AppliedIndex, st.StateIndex, st.StateHash)
		}
		return len(states) == len(p.servers) && len(slices.Compact(slices.Clone(states))) == 1
	})
	p.t.Logf("index and state hash of every server: %s", states[0])
}

// logDifferences logs how the states of the other servers differ from that of the first one.
func (p *processPool) logDifferences() {
	var first *stateRows
	for _, s := range p.servers {
		rows, err := s.rows()
		switch {
		case err != nil:
			p.t.Logf("%s: no snapshot: %v", s.name, err)
		case first == nil:
			first = rows
		default:
			p.t.Logf("from the state of the first server to that of %s:\n%.6000s", s.name, cmp.Diff(first, rows, replicationtest.Equal))
		}
	}
}

// stateRows holds the tables of a state that jobs on nodes change.
type stateRows struct {
	Index  uint64
	Nodes  []*model.Node
	Jobs   []*model.Job
	Allocs []*model.Allocation
	Evals  []*model.Evaluation
}

// rows returns the tables of the state of a server.
func (s *poolServer) rows() (*stateRows, error) {
	ctx, cancel := context.WithTimeout(s.p.t.Context(), 10*time.Second)
	defer cancel()
	var b bytes.Buffer
	if err := s.c.Operator().SnapshotSave(ctx, &b); err != nil {
		return nil, err
	}
	r := snapshot.Restorer{Begin: state.New().BeginRestore}
	txn, err := r.Read(&b)
	if err != nil {
		return nil, err
	}
	sn := txn.Commit()
	return &stateRows{
		Index: sn.Index(), Nodes: slices.Collect(sn.Nodes()), Jobs: slices.Collect(sn.Jobs()),
		Allocs: slices.Collect(sn.Allocs()), Evals: slices.Collect(sn.Evals()),
	}, nil
}

// logBlocked ends the servers, and logs their goroutines that have been blocked for minutes by
// others, those of Raft, and those that serve a status request. Goroutines that wait for work
// are in a select or receive.
func (p *processPool) logBlocked() {
	for _, s := range p.servers {
		before := len(s.log.String())
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // fails if the process has exited
		<-s.exited
		for g := range strings.SplitSeq(s.log.String()[before:], "\n\n") {
			head, _, _ := strings.Cut(g, "\n")
			isBlocked := strings.Contains(head, " minutes") && (strings.Contains(head, "[sync.") || strings.Contains(head, "[chan send"))
			if isBlocked || slices.ContainsFunc(statusGoroutines, func(name string) bool { return strings.Contains(g, name) }) {
				p.t.Logf("%s: %s", s.name, g[:min(len(g), 1500)])
			}
		}
	}
}

// statusGoroutines are functions of the goroutines that determine the status of a server.
var statusGoroutines = []string{"raft.(*Raft).runFSM", "raft.(*Raft).run(", "raft.(*Raft).replicate(", "raftshim.(*transportFilter).run", "api.raftStatus"}
