package raftshim_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication/raftshim"
)

// A pipeNet connects transports by pipes. Unlike an in-memory transport, they handle
// heartbeats on the goroutines of their connections, as in production. Unlike sockets, they
// work with virtual time.
type pipeNet map[raft.ServerAddress]*pipeLayer

// A pipeLayer is the stream layer of one server.
type pipeLayer struct {
	net      pipeNet
	addr     raft.ServerAddress
	incoming chan net.Conn
	closed   chan struct{}

	mu    sync.Mutex
	conns []net.Conn
}

// transport returns a new transport with the given address. Closing it closes its
// connections.
func (n pipeNet) transport(addr raft.ServerAddress) *raft.NetworkTransport {
	n[addr] = &pipeLayer{net: n, addr: addr, incoming: make(chan net.Conn), closed: make(chan struct{})}
	return raft.NewNetworkTransport(n[addr], 3, 10*time.Second, io.Discard)
}

// Dial implements raft.StreamLayer.
func (l *pipeLayer) Dial(to raft.ServerAddress, _ time.Duration) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.net[to].incoming <- far:
	case <-l.net[to].closed:
		return nil, net.ErrClosed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, near)
	return near, nil
}

// Accept implements net.Listener.
func (l *pipeLayer) Accept() (net.Conn, error) {
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeLayer) Close() error {
	close(l.closed)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close() // the other end receives the error
	}
	return nil
}

// Addr implements net.Listener.
func (l *pipeLayer) Addr() net.Addr { return pipeAddr(l.addr) }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

// noState is an FSM without a state.
type noState struct{}

func (noState) Apply(*raft.Log) any                 { return nil }
func (noState) ApplyBatch(list []*raft.Log) []any   { return make([]any, len(list)) }
func (noState) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }
func (noState) Restore(in io.ReadCloser) error      { return in.Close() }
func (noState) StateIndex() uint64                  { return 0 }
func (noState) Err() error                          { return nil }

// A slowStore is a log on a disk that can be busy.
type slowStore struct {
	*raft.InmemStore
	busy chan struct{} // one slot: the disk is busy while it is full
}

func (s slowStore) StoreLogs(list []*raft.Log) error {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	return s.InmemStore.StoreLogs(list)
}

// A testServer is the server s0. The test simulates its peer s1.
type testServer struct {
	*raft.Raft
	log  slowStore
	peer *raft.NetworkTransport
}

// runTestServer runs a test of s0 in a cluster of the given voters.
func runTestServer(t *testing.T, voters []raft.Server, test func(*testing.T, *testServer)) {
	synctest.Test(t, func(t *testing.T) {
		n := pipeNet{}
		s := &testServer{log: slowStore{raft.NewInmemStore(), make(chan struct{}, 1)}, peer: n.transport("s1")}
		defer func() { _ = s.peer.Close() }()
		conf := raft.DefaultConfig()
		conf.LocalID, conf.LogOutput = "s0", io.Discard
		shim, err := raftshim.Start(raftshim.Config{
			Raft: conf, FSM: noState{}, Log: s.log, Stable: s.log, Snapshots: raft.NewInmemSnapshotStore(),
			Transport: n.transport("s0"), Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = shim.Close() }()
		s.Raft = shim.Raft()
		if err := s.BootstrapCluster(raft.Configuration{Servers: voters}).Error(); err != nil {
			t.Fatal(err)
		}
		test(t, s)
	})
}

// appendEntries sends the server entries of the peer, which leads in the given term. Without
// entries, it is a heartbeat.
func (s *testServer) appendEntries(t *testing.T, term uint64, entries ...*raft.Log) {
	t.Helper()
	var resp raft.AppendEntriesResponse
	req := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("s1"), Addr: []byte("s1")}, Term: term, Entries: entries,
	}
	if len(entries) > 0 {
		req.PrevLogEntry, req.PrevLogTerm = entries[0].Index-1, 1
	}
	if err := s.peer.AppendEntries("s0", "s0", req, &resp); err != nil || !resp.Success || resp.Term != term {
		t.Errorf("request of the leader of term %d: %+v, %v", term, resp, err)
	}
}

// A leader that was paused continues, and receives a heartbeat of its successor before its main
// thread notices that it lost the lead. An entry that is proposed then is refused. If it were
// written, it would have the term of the successor, and would count as identical to the
// successor's entry at this index. UPSTREAM.md, section 19.
func TestHeartbeat_DeposedLeaderWritesNoEntryOfNewerTerm(t *testing.T) {
	runTestServer(t, []raft.Server{{ID: "s0", Address: "s0"}}, func(t *testing.T, s *testServer) {
		for s.State() != raft.Leader {
			time.Sleep(time.Millisecond)
		}
		if err := s.Barrier(0).Error(); err != nil {
			t.Fatal(err)
		}
		term := s.CurrentTerm()
		s.appendEntries(t, term+1)
		if err := s.Apply([]byte("entry"), 0).Error(); !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("deposed leader returned %v, want %v", err, raft.ErrNotLeader)
		}
		for index := uint64(1); index <= s.LastIndex(); index++ {
			var l raft.Log
			if err := s.log.GetLog(index, &l); err != nil {
				t.Fatal(err)
			}
			if l.Term > term {
				t.Errorf("entry %d has term %d, in which another server leads", index, l.Term)
			}
		}
	})
}

// A candidate that receives a heartbeat of a newer term does not win the election of its own
// term afterwards: there would be two leaders in the newer term. UPSTREAM.md, section 19.
func TestHeartbeat_CandidateDoesNotWinAfterNewerTerm(t *testing.T) {
	runTestServer(t, []raft.Server{{ID: "s0", Address: "s0"}, {ID: "s1", Address: "s1"}}, func(t *testing.T, s *testServer) {
		for rpc := range s.peer.Consumer() {
			header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
			switch req := rpc.Command.(type) {
			case *raft.RequestPreVoteRequest:
				rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: header, Term: req.Term, Granted: true}, nil)
				continue
			case *raft.RequestVoteRequest:
				s.appendEntries(t, req.Term+1)
				rpc.Respond(&raft.RequestVoteResponse{RPCHeader: header, Term: req.Term, Granted: true}, nil)
			}
			break
		}
		synctest.Wait()
		if state := s.State(); state != raft.Follower {
			t.Errorf("server is the %v in term %d, in which another server leads", state, s.CurrentTerm())
		}
	})
}

// A follower answers heartbeats while its disk is busy. Otherwise a slow disk of the followers
// would depose the leader.
func TestHeartbeat_IsAnsweredWhileDiskIsBusy(t *testing.T) {
	runTestServer(t, []raft.Server{{ID: "s0", Address: "s0"}, {ID: "s1", Address: "s1"}}, func(t *testing.T, s *testServer) {
		s.appendEntries(t, 2)
		s.log.busy <- struct{}{}
		written := make(chan struct{})
		go func() {
			defer close(written)
			s.appendEntries(t, 2, &raft.Log{Index: 2, Term: 2, Data: []byte("entry")})
		}()
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			s.appendEntries(t, 2)
		}
		if last := s.LastIndex(); last != 1 {
			t.Errorf("log ends at %d although the disk is busy", last)
		}
		<-s.log.busy
		<-written
		if state := s.State(); state != raft.Follower || s.LastIndex() != 2 {
			t.Errorf("server is the %v, and its log ends at %d", state, s.LastIndex())
		}
	})
}
