package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// An entry of several parts whose second part was refused is written in part. Its error
// wraps the reason, and must not become that reason: the caller would conclude that
// nothing was written.
func TestRPCHandler_TranslatesOutcomes(t *testing.T) {
	log := stubLog{}
	h := rpcHandler{&Server{cfg: Config{ID: "s1", Log: log}}}
	partly := fmt.Errorf("%w: 1 of 2 parts were written: %w", replication.ErrUnknownOutcome, replication.ErrNotLeader)
	for name, c := range map[string]struct {
		err        error
		notLeader  bool
		notWritten bool
	}{
		"lost the lead":                {&replication.LeaderError{}, true, false},
		"lost the lead, for users":     {logwriter.Unwritten("s1", log, &replication.LeaderError{}), true, false},
		"applier stopped":              {planner.ErrStopped, true, false},
		"written in part":              {partly, false, false},
		"written in part, for users":   {logwriter.Unwritten("s1", log, partly), false, false},
		"log is busy":                  {logwriter.Unwritten("s1", log, replication.ErrBusy), false, true},
		"busy after the first of many": {fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, replication.ErrBusy), false, false},
	} {
		got := h.translate(c.err)
		_, notLeader := errors.AsType[*rpc.NotLeaderError](got)
		if notLeader != c.notLeader || errors.Is(got, rpc.ErrNotWritten) != c.notWritten {
			t.Errorf("%s: %v becomes %v", name, c.err, got)
		}
	}
}

// stubLog is the log of a server that does not lead.
type stubLog struct{ Log }

func (stubLog) IsLeader() bool            { return false }
func (stubLog) Leader() (id, addr string) { return "s2", "" }
func (stubLog) Term() uint64              { return 7 }

// stubPeers returns an error for each forwarded entry.
type stubPeers struct {
	Peers
	err error
}

func (p stubPeers) Apply(context.Context, string, []byte) (rpc.Applied, error) {
	return rpc.Applied{}, p.err
}

// A follower that forwards an entry distinguishes what the leader has certainly not
// written from an unknown outcome.
func TestForwardingLog_TranslatesOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want error
		unknown      bool
	}{
		"not the leader":     {&rpc.NotLeaderError{}, replication.ErrNotLeader, false},
		"unknown address":    {rpc.ErrUnknownServer, replication.ErrNotLeader, false},
		"the leader is busy": {fmt.Errorf("server s2: %w", rpc.ErrNotWritten), replication.ErrBusy, false},
		"connection lost":    {rpc.ErrUnreachable, replication.ErrUnknownOutcome, true},
		"anything else":      {errors.New("server s2: it failed"), replication.ErrUnknownOutcome, true},
	} {
		log := forwardingLog{Log: stubLog{}, serverID: "s1", peers: stubPeers{err: c.answer}}
		_, err := log.Apply(t.Context(), &replication.Entry{Command: &replication.CheckPolicy{Version: "v", Server: "s1"}})
		if !errors.Is(err, c.want) || errors.Is(err, replication.ErrUnknownOutcome) != c.unknown {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
