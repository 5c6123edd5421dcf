package operator

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage/doctor"
)

// replayView is the state after replaying the directory of a stopped server.
type replayView struct {
	Snapshot    uint64 `json:"snapshot,omitempty"` // index of the initial snapshot
	From        uint64 `json:"from,omitempty"`     // following entries
	To          uint64 `json:"to,omitempty"`
	StateIndex  uint64 `json:"stateIndex"`
	StateHash   string `json:"stateHash"`
	Nodes       int    `json:"nodes"`
	Jobs        int    `json:"jobs"`
	Allocations int    `json:"allocations"`
	Evaluations int    `json:"evaluations"`
	// Problem describes an inconsistency of the state; "" if there is none.
	Problem string `json:"problem,omitempty"`
}

// replay computes the state again up to an entry; 0: up to the end of the log. observe
// receives the progress.
func replay(ctx context.Context, dir string, until uint64, observe func(part string, share float64)) (view *replayView, err error) {
	err = doctor.Inspect(dir, func(s *doctor.Offline) error {
		view, err = replayStopped(ctx, s, until, observe)
		return err
	})
	return view, err
}

func replayStopped(ctx context.Context, s *doctor.Offline, until uint64, observe func(part string, share float64)) (*replayView, error) {
	first, last, _ := s.Range()
	until = cmp.Or(until, last)
	v := &replayView{}
	from, begin, err := replayFrom(s, until)
	if err != nil {
		return nil, err
	}
	r := &raftnode.Replay{From: max(first, 1), To: min(until, last)}
	r.Entry = func(index uint64, into *raft.Log) error {
		observe(fmt.Sprintf("entry %d of %d", index, r.To), float64(index-r.From)/float64(r.To-r.From+1))
		return s.Entry(index, into)
	}
	if begin != nil {
		defer func() { _ = begin.Close() }() // read-only
		r.Snapshot, v.Snapshot, r.From = bufio.NewReaderSize(begin, 1<<20), from, from+1
	}
	switch {
	case until > max(last, from):
		return nil, cmdutil.Usagef("remove --until", "--until %d is beyond the last entry of the log, %d", until, last)
	case r.From <= r.To:
		v.From, v.To = r.From, r.To
		if first > r.From {
			return nil, cmdutil.Usagef("remove --until", "--until %d is before the first entry of the log, %d", until, first)
		}
	}
	sn, err := r.Run(ctx)
	if err != nil {
		return nil, err
	}
	v.fill(sn)
	return v, nil
}

// replayFrom opens the newest snapshot that is not newer than an entry. It returns
// nil if there is none.
func replayFrom(s *doctor.Offline, until uint64) (index uint64, begin io.ReadCloser, err error) {
	for _, snap := range s.Snapshots() {
		if snap.Index <= until || until == 0 {
			begin, err = snap.Open()
			return snap.Index, begin, err
		}
	}
	return 0, nil, nil
}

func (v *replayView) fill(sn *state.Snapshot) {
	hash := snapshot.Hash(sn)
	v.StateIndex, v.StateHash = sn.Index(), hex.EncodeToString(hash[:])
	v.Nodes, v.Allocations, v.Evaluations = sn.NodeCount(), sn.AllocCount(), sn.EvalCount()
	for range sn.Jobs() {
		v.Jobs++
	}
	if err := sn.Check(); err != nil {
		v.Problem = err.Error()
	}
}

func (v *replayView) page(p cmdutil.Page) {
	p.Title("Replay")
	began := "an empty state"
	if v.Snapshot > 0 {
		began = fmt.Sprintf("the snapshot at %d", v.Snapshot)
	}
	if v.To > 0 {
		began += fmt.Sprintf(", then entries %d to %d", v.From, v.To)
	}
	p.Properties("of", began, "state index", fmt.Sprint(v.StateIndex), "state hash", v.StateHash,
		"nodes", cmdutil.Thousands(v.Nodes), "jobs", cmdutil.Thousands(v.Jobs), "allocations", cmdutil.Thousands(v.Allocations), "evaluations", cmdutil.Thousands(v.Evaluations))
	if v.Problem != "" {
		p.Printf("\nThe state is inconsistent: %s\n", v.Problem)
	}
}
