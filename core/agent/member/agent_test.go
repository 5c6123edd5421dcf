package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/sdk/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServers implements Servers in memory.
type fakeServers struct {
	mu       sync.Mutex
	secret   string
	known    bool
	lease    int
	reported map[string]int64
	leases   []client.ClusterLease
	index    uint64
	list     []*client.Assignment
	changed  chan struct{}
	said     []client.AssignmentUpdate
	down     bool
}

func newFakeServers() *fakeServers { return &fakeServers{index: 1, changed: make(chan struct{})} }

var errDown = errors.New("connection refused")

func (d *fakeServers) Register(_ context.Context, _ string, req *client.ClusterRegisterRequest) (*client.NodeLease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, errDown
	}
	if d.secret != "" && d.secret != req.Secret {
		return nil, &client.Error{StatusCode: 403, Code: client.CodeForbidden}
	}
	d.secret, d.known, d.reported = req.Secret, true, req.Reported
	return &client.NodeLease{HeartbeatTTL: 10 * time.Second}, nil
}

func (d *fakeServers) Heartbeat(_ context.Context, _, secret string, req *client.ClusterHeartbeatRequest) (*client.NodeLease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.down:
		return nil, errDown
	case !d.known || secret != d.secret:
		return nil, &client.Error{StatusCode: 404, Code: client.CodeNotFound}
	}
	d.lease++
	d.reported, d.leases = req.Reported, req.Leases
	return &client.NodeLease{HeartbeatTTL: 10 * time.Second}, nil
}

func (d *fakeServers) Assignments(ctx context.Context, _, _ string, q *client.QueryOptions) ([]*client.Assignment, *client.QueryMeta, error) {
	for {
		d.mu.Lock()
		index, list, changed, down := d.index, slices.Clone(d.list), d.changed, d.down
		d.mu.Unlock()
		if down {
			return nil, nil, errDown
		}
		if q.Index != index {
			return list, &client.QueryMeta{LastIndex: index}, nil
		}
		select {
		case <-changed:
		case <-time.After(q.Wait):
			return list, &client.QueryMeta{LastIndex: index}, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// Update records the updates and applies them to the list, as servers do.
func (d *fakeServers) Update(_ context.Context, _, _ string, updates []client.AssignmentUpdate) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return 0, errDown
	}
	d.said = append(d.said, updates...)
	list := slices.Clone(d.list)
	for _, u := range updates {
		at := slices.IndexFunc(list, func(a *client.Assignment) bool { return a.ID == u.AssignmentID })
		switch {
		case at < 0:
		case u.ClientStatus == "complete" || u.ClientStatus == "failed":
			list = slices.Delete(list, at, at+1)
		default:
			a := *list[at]
			a.ClientStatus, a.Ready, a.ClientDescription = u.ClientStatus, u.Ready, u.Description
			list[at] = &a
		}
	}
	d.put(list)
	return d.index, nil
}

func (d *fakeServers) put(list []*client.Assignment) {
	d.list = list
	d.index++
	close(d.changed)
	d.changed = make(chan struct{})
}

// assign replaces the list of assignments.
func (d *fakeServers) assign(list ...*client.Assignment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(list)
}

// listed returns the assignments that have not ended, each as ID STATUS READY.
func (d *fakeServers) listed() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var words []string
	for _, a := range d.list {
		words = append(words, fmt.Sprintf("%s %s %d", a.ID, a.ClientStatus, a.Ready))
	}
	return strings.Join(words, ", ")
}

func wanted(id string, replicas int, change func(*client.Assignment)) *client.Assignment {
	kill := 5 * time.Second
	a := &client.Assignment{
		ID: id, Namespace: "default", BindingID: "b", Replicas: replicas, DesiredStatus: "run", ClientStatus: "pending",
		Binding: &client.Binding{ID: "b", KillTimeout: &kill},
	}
	if change != nil {
		change(a)
	}
	return a
}

func evicted(a *client.Assignment) { a.DesiredStatus, a.ClientStatus = "evict", "running" }

// run starts an agent and returns a function that stops it.
func (d *fakeServers) run(t *testing.T, driver Driver, dir string) (stop func()) {
	t.Helper()
	a, err := New(Config{Pools: []Pool{{Servers: d}}, Driver: driver, Cluster: "m", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *fakeServers) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := d.listed(); got != want {
		t.Errorf("assigned: %q, want %q", got, want)
	}
}

func TestAgent_RunsStopsAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sim, dir := newFakeServers(), NewSim(map[string]int64{"cpu": 1000}), t.TempDir()
		stop := d.run(t, sim, dir)
		d.assign(wanted("a", 2, nil), wanted("b", 1, func(a *client.Assignment) { a.Binding.Duration = time.Minute }))
		time.Sleep(10 * time.Second)
		d.expect(t, "a running 2, b running 1")
		d.assign(wanted("a", 3, func(a *client.Assignment) { a.ClientStatus, a.Ready = "running", 2 }), wanted("b", 1, func(a *client.Assignment) {
			a.Binding.Duration, a.ClientStatus, a.Ready = time.Minute, "running", 1
		}))
		time.Sleep(5 * time.Second)
		d.expect(t, "a running 3, b running 1")
		time.Sleep(time.Minute)
		d.expect(t, "a running 3") // b has completed

		d.assign(wanted("a", 3, evicted))
		time.Sleep(3 * time.Second)
		d.expect(t, "a running 3") // within the kill timeout
		time.Sleep(5 * time.Second)
		d.expect(t, "")
		stop()
		if d.lease == 0 {
			t.Error("the lease was not renewed")
		}
	})
}

func TestAgent_ResumesAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sim, dir := newFakeServers(), NewSim(nil), t.TempDir()
		stop := d.run(t, sim, dir)
		d.assign(wanted("a", 2, nil), wanted("gone", 1, nil))
		time.Sleep(10 * time.Second)
		stop()
		began := sim.work["a"].began
		d.assign(wanted("a", 2, nil)) // the servers were restored from a snapshot
		defer d.run(t, sim, dir)()
		time.Sleep(10 * time.Second)
		d.expect(t, "a running 2")
		if there, _ := sim.Status(t.Context()); sim.work["a"].began != began || len(there) != 1 {
			t.Errorf("workloads are %v; a started at %v, then at %v", slices.Sorted(maps.Keys(there)), began, sim.work["a"].began)
		}
	})
}

func TestAgent_StopsNothingWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, sim := newFakeServers(), NewSim(nil)
		dir := t.TempDir()
		stop := d.run(t, sim, dir)
		d.assign(wanted("a", 1, nil))
		time.Sleep(5 * time.Second)
		stop()
		d.down = true
		stop = d.run(t, sim, dir)
		time.Sleep(time.Hour)
		if there, _ := sim.Status(t.Context()); len(there) != 1 {
			t.Errorf("workloads are %v", there)
		}
		d.mu.Lock()
		d.down, d.known = false, false // the servers return without the cluster
		d.mu.Unlock()
		time.Sleep(20 * time.Second)
		d.expect(t, "a running 1")
		if !d.known {
			t.Error("the cluster did not register again")
		}
		stop()
	})
}

// Replicas that are removed from an assignment stop as a part with its own ID. The
// part is complete when only the remaining replicas run.
type shrinking struct {
	*Sim
	lock sync.Mutex
	held int // running replicas
	of   string
}

func (s *shrinking) Status(ctx context.Context) (map[string]Status, error) {
	all, err := s.Sim.Status(ctx)
	s.lock.Lock()
	defer s.lock.Unlock()
	if status, ok := all[s.of]; ok {
		status.Held = s.held
		all[s.of] = status
	}
	return all, err
}

func TestAgent_CompletesPartWhenItsReplicasStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, driver := newFakeServers(), &shrinking{Sim: NewSim(nil), held: 3, of: "a"}
		stop := d.run(t, driver, t.TempDir())
		d.assign(wanted("a", 3, nil))
		time.Sleep(10 * time.Second)
		d.assign(wanted("a", 1, nil), wanted("a/less/c", 2, evicted))
		time.Sleep(10 * time.Second)
		d.expect(t, "a running 1, a/less/c running 0")
		driver.lock.Lock()
		driver.held = 1
		driver.lock.Unlock()
		time.Sleep(10 * time.Second)
		d.expect(t, "a running 1")
		stop()
	})
}

func TestNew_ReportsAllMissingFields(t *testing.T) {
	_, err := New(Config{})
	for _, want := range []string{"servers", "driver", "cluster ID", "data directory"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
