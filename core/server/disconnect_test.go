package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
)

// disconnectJob returns a job of one instance with a disconnect block.
func disconnectJob(lostAfter time.Duration, replace bool) *coretest.JobBuilder {
	return coretest.Job("web").Ask(400, 400, 0).With(func(g *model.Group) {
		g.Disconnect = &model.Disconnect{LostAfter: int64(lostAfter), Replace: replace}
	})
}

// disconnectNode disconnects the node of the only instance of the job.
func (w *harness) disconnectNode() (*testNode, *model.Allocation) {
	w.t.Helper()
	w.waitIdle()
	var on *testNode
	for node := range w.liveByNode("web") {
		on = w.machines[node]
	}
	a := w.onlyLiveAlloc()
	on.stop()
	for range 600 {
		if w.snap().Node(on.node.ID).Status == model.NodeDown {
			w.waitIdle()
			return on, a
		}
		time.Sleep(time.Second)
	}
	w.t.Fatalf("disconnected node %s is not down", on.node.ID)
	return nil, nil
}

// onlyLiveAlloc returns the single live allocation of the job.
func (w *harness) onlyLiveAlloc() *model.Allocation {
	w.t.Helper()
	w.expectLiveCount("web", 1)
	for _, a := range w.snap().AppendJobAllocs(nil, model.JobKey{Namespace: model.DefaultNamespace, ID: "web"}) {
		if a.Live() {
			return a
		}
	}
	w.t.Fatal("job web has no live instance")
	return nil
}

func (m *testNode) reconnect() {
	m.start()
	for m.w.snap().Node(m.node.ID).Status != model.NodeReady {
		time.Sleep(100 * time.Millisecond)
	}
	m.w.waitIdle()
}

// eventKinds returns the events of an allocation.
func (w *harness) eventKinds(id string) (kinds []string) {
	w.t.Helper()
	sub, err := w.leader().server.Events(w.ctx, 1, []string{string(events.Allocation)})
	if err != nil {
		w.t.Fatal(err)
	}
	for {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		batch, err := sub.Next(ctx)
		cancel()
		if err != nil {
			return kinds
		}
		for _, e := range batch.Events {
			if e.Key == id {
				kinds = append(kinds, e.Type+" "+e.Payload.(events.AllocationPayload).Client)
			}
		}
	}
}

func TestDisconnect_AllocationContinuesWhenNodeReturns(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(2)
		w.registerJob(disconnectJob(0, false))
		node, a := w.disconnectNode()
		time.Sleep(20 * time.Minute)
		w.waitIdle()
		if now := w.onlyLiveAlloc(); now.ID != a.ID || !now.Unknown(w.snap().Node(now.NodeID)) {
			t.Errorf("replaced by %+v", now)
		}
		node.reconnect()
		if now := w.onlyLiveAlloc(); now.ID != a.ID || now.Unknown(w.snap().Node(now.NodeID)) || now.Client != model.ClientRunning {
			t.Errorf("replaced by %+v", now)
		}
		kinds := w.eventKinds(a.ID)
		if !slices.Contains(kinds, "AllocationUnknown unknown") || !slices.Contains(kinds, "AllocationReturned running") {
			t.Errorf("events are %q", kinds)
		}
	})
}

// Leaders change, and one restarts: the time counts from when the node was declared down.
func TestDisconnect_LostAfterTimeoutAcrossLeaders(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		w.addNodes(2)
		w.registerJob(disconnectJob(12*time.Minute, false))
		_, a := w.disconnectNode()
		lost := time.Unix(0, w.snap().Node(a.NodeID).DownSince).Add(12 * time.Minute)
		time.Sleep(2 * time.Minute)
		if err := w.leader().node.Transfer(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		m := w.leader()
		m.halt()
		time.Sleep(time.Minute)
		m.start()
		w.waitIdle()
		time.Sleep(time.Until(lost) - time.Minute)
		if now := w.onlyLiveAlloc(); now.ID != a.ID {
			t.Errorf("replaced by %s a minute too early", now.ID)
		}
		time.Sleep(2 * time.Minute)
		w.waitIdle()
		if now := w.onlyLiveAlloc(); now.ID == a.ID || now.NodeID == a.NodeID {
			t.Errorf("%+v was not replaced", now)
		}
		if was := w.snap().Alloc(a.ID); was.Client != model.ClientLost {
			t.Errorf("the lost allocation is %s", was.Client)
		}
	})
}

func TestDisconnect_ReplacementRunsUntilNodeReturns(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(2)
		w.registerJob(disconnectJob(12*time.Minute, true))
		node, a := w.disconnectNode()
		w.expectLiveCount("web", 2)
		node.reconnect()
		if now := w.onlyLiveAlloc(); now.ID != a.ID {
			t.Errorf("%s runs instead of the original", now.ID)
		}
	})
}

// A job that is stopped while the node is disconnected is stopped there when the node
// returns.
func TestDisconnect_StopsWhenNodeReturns(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(2)
		w.registerJob(disconnectJob(0, false))
		node, a := w.disconnectNode()
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "web"}, endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		if now := w.snap().Alloc(a.ID); !now.Stopping() {
			t.Errorf("%+v", now)
		}
		node.reconnect()
		if now := w.snap().Alloc(a.ID); now.Client != model.ClientComplete {
			t.Errorf("%+v", now)
		}
		w.expectLiveCount("web", 0)
	})
}

func TestDisconnect_LostWhenNodeIsDeleted(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(2)
		w.registerJob(disconnectJob(0, false))
		_, a := w.disconnectNode()
		w.mustCall(func(s *Server) error {
			_, err := s.DeleteNode(w.ctx, a.NodeID)
			return err
		})
		w.waitIdle()
		if now := w.onlyLiveAlloc(); now.NodeID == a.NodeID {
			t.Errorf("%+v", now)
		}
	})
}
