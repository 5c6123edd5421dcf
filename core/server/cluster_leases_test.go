package server

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
)

// reportLeases reports leases of other pools through the agent of cluster m.
func (w *harness) reportLeases(leases ...endpoint.ClusterLease) {
	w.t.Helper()
	w.mustCall(func(s *Server) error {
		_, err := s.ClusterHeartbeat(w.ctx, "m", memberSecret, &endpoint.ClusterReport{Leases: leases})
		return err
	})
	w.waitIdle()
}

func unitsOf(pool, id string, units int64, priority int32) endpoint.ClusterLease {
	return endpoint.ClusterLease{Pool: pool, ID: id, Resources: model.Resources{"units": units, "unheard-of": 1}, Priority: priority}
}

// Leases of another pool are not available to bindings. A binding of a higher priority that
// preempts revokes them, unless other capacity is free.
func TestClusters_OnlyHigherPrioritiesRevokeLeases(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.registerMember("m") // of 10 units
		w.reportLeases(unitsOf("b", "their/job/m/1", 8, 3))
		w.registerBinding("small", 1, 2, nil)
		w.registerBinding("equal", 3, 4, func(b *model.Binding) { b.Preempts, b.Clusters = true, []string{"m"} })
		w.registerBinding("never", 9, 4, func(b *model.Binding) { b.Clusters = []string{"m"} })
		w.waitIdle()
		w.expectAssigned("small", "m:1")
		w.expectAssigned("equal", "")
		w.expectAssigned("never", "")
		index := w.snap().Index()
		w.reportLeases(unitsOf("b", "their/job/m/1", 8, 3))
		if now := w.snap().Index(); now != index {
			t.Errorf("an unchanged report was written at index %d", now)
		}
		w.registerBinding("high", 5, 4, withPreemption)
		w.waitIdle()
		w.expectAssigned("high", "m:1") // the agent evicts the others
		if victims := w.eventTypes("Preemption"); len(victims) != 0 {
			t.Errorf("evictions in its own pool: %v", victims)
		}
		w.putCluster("free", 4)
		w.registerBinding("second", 5, 4, withPreemption)
		w.waitIdle()
		w.expectAssigned("second", "free:1") // the cluster without evictions
		w.reportLeases(unitsOf("b", "their/job/m/1", 4, 3))
		w.expectAssigned("equal", "")
		w.mustCall(func(s *Server) error {
			_, err := s.StopBinding(w.ctx, bindingKey("equal"), endpoint.StopOptions{})
			return err
		})
		w.reportLeases()
		w.expectAssigned("never", "m:1")
	})
}

func TestClusterHeartbeat_ReturnsAllInvalidLeases(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerMember("m")
		_, err := w.leader().server.ClusterHeartbeat(w.ctx, "m", memberSecret, &endpoint.ClusterReport{Leases: []endpoint.ClusterLease{
			unitsOf("", "x", 1, 0), unitsOf("a/b", "x", 1, 0), unitsOf("c", "x", -1, 0), unitsOf("c", "x", 1, 0),
		}})
		for _, want := range []string{`pool ""`, `pool "a/b"`, "amount of units must not be negative", "listed twice"} {
			if apierror.CodeOf(err) != apierror.CodeInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
	})
}
