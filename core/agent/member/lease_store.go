package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
	"github.com/cede-scheduler/cede/core/lease"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A leaseStore manages the leases of a cluster that several pools share, and their
// file. Changes are saved before they take effect.
type leaseStore struct {
	path string
	keep time.Duration

	mu      sync.Mutex
	manager *lease.Manager
	dirty   bool // the file is older than manager
	// Invariant: every key in revoked is listed by its pool. Its lease was
	// rejected or revoked, and it gets no other one, because its pool may have
	// been notified and dropped the assignment.
	revoked map[lease.Key]bool
}

// storedLeases is the content of the file, which survives restarts of the agent.
type storedLeases struct {
	Last   uint64 // of the latest lease
	Leases []lease.Lease
}

func openLeaseStore(dir string, keep time.Duration) (*leaseStore, error) {
	l := &leaseStore{path: filepath.Join(dir, "leases.json"), keep: keep, revoked: map[lease.Key]bool{}}
	text, _, err := checkedfile.Read(l.path)
	var file storedLeases
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("invalid lease file %s: %w; if the file is removed, capacity is leased to running workloads and to the first requests", l.path, err)
	}
	l.manager = lease.New(nil, file.Last, file.Leases...)
	return l, nil
}

// save writes changes to the file. If it fails, the changes must not take effect.
func (l *leaseStore) save() error {
	if !l.dirty {
		return nil
	}
	leases, last := l.manager.Leases()
	text, err := json.MarshalIndent(storedLeases{last, leases}, "", " ")
	if err == nil {
		err = checkedfile.Write(l.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot save leases: %w", err)
	}
	l.dirty = false
	return nil
}

func (l *leaseStore) resize(resources *ClusterResources) {
	usable := maps.Clone(resources.Capacity)
	maps.Copy(usable, resources.Usable)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manager.Resize(usable)
}

// others returns the leases of all pools except one, as reported to that pool.
func (l *leaseStore) others(now int64, pool string) (list []client.ClusterLease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.manager.ForeignLeases(now, pool) {
		list = append(list, client.ClusterLease{Pool: x.Pool, ID: x.ID, Resources: x.Resources, Priority: int(x.Priority)})
	}
	return list
}

// A leaseDecision is the result for an assignment that should run.
type leaseDecision uint8

const (
	decisionRun    leaseDecision = iota // with the desired replicas
	decisionKeep                        // unchanged: capacity for more replicas is not available
	decisionWait                        // until other workloads have stopped
	decisionStop                        // it was revoked
	decisionReject                      // another pool holds the capacity
)

// leaseDecisions holds the results for the desired state of all pools.
type leaseDecisions struct {
	of      map[lease.Key]leaseDecision
	revoked map[lease.Key]lease.Key // revoked lease to the one it was revoked for
	stop    []string                // IDs of workloads whose lease was revoked
	changed bool                    // leases changed, and all pools must be notified
}

// An outcome is a decision with its description for users.
type outcome struct {
	decision leaseDecision
	text     string
}

func (r *leaseDecisions) outcome(key lease.Key) outcome {
	w := outcome{decision: r.of[key]}
	switch w.decision {
	case decisionKeep:
		w.text = "capacity for more replicas is leased to another pool"
	case decisionWait:
		w.text = "its capacity is reserved and still in use"
	case decisionStop:
		w.text = "stopping for pool " + r.revoked[key].Pool
	case decisionReject:
		w.text = "the capacity is leased to another pool"
	}
	return w
}

// reconcile updates the leases according to the desired and the actual state, saves
// them, and returns the decisions. If the leases cannot be saved, it returns an error
// and no decision may be applied.
func (l *leaseStore) reconcile(now int64, states []desired, actual map[string]Status) (*leaseDecisions, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, _ := l.manager.Leases()
	r := &leaseDecisions{of: map[lease.Key]leaseDecision{}, revoked: map[lease.Key]lease.Key{}}
	l.manager.Expire(now)
	l.release(states, actual)
	for i := range states {
		for _, as := range byPrecedence(&states[i], l.manager) {
			l.decide(now, &states[i], as, actual[as.ID], r)
		}
	}
	after, _ := l.manager.Leases()
	for i := range after {
		if after[i].State == lease.Stopping {
			r.revoked[after[i].Key] = after[i].By
			r.stop = append(r.stop, after[i].ID)
		}
	}
	r.changed = !slices.EqualFunc(before, after, sameLease)
	l.dirty = l.dirty || r.changed
	return r, l.save()
}

// sameLease reports whether two leases are equal except for their expiry.
func sameLease(x, y lease.Lease) bool {
	return x.Key == y.Key && x.State == y.State && x.Number == y.Number
}

// release returns the leases of workloads that have ended, and marks those as
// stopping that their pool no longer requests.
func (l *leaseStore) release(states []desired, actual map[string]Status) {
	listed, requested, received := map[lease.Key]bool{}, map[lease.Key]bool{}, map[string]bool{}
	for i := range states {
		w := &states[i]
		received[w.pool.Name] = true
		for _, as := range w.assignments {
			status := actual[as.ID] // the zero value if the workload does not exist yet
			listed[w.key(as.ID)] = true
			requested[w.key(as.ID)] = as.DesiredStatus == client.DesiredClaim || as.DesiredStatus == "run" && !ended(&status)
		}
	}
	leases, _ := l.manager.Leases()
	for _, x := range leases {
		status, exists := actual[x.ID]
		live := exists && !ended(&status)
		switch {
		case x.State == lease.Stopping && !live:
			l.manager.Release(x.Key, x.Number)
			l.revoked[x.Key] = true
		case x.State == lease.Stopping || requested[x.Key] || !received[x.Pool]:
		case live:
			l.manager.MarkStopping(x.Key)
		default:
			l.manager.Release(x.Key, x.Number)
		}
	}
	maps.DeleteFunc(l.revoked, func(k lease.Key, _ bool) bool { return received[k.Pool] && !listed[k] })
}

// ended reports whether a workload has ended by itself and uses no resources.
func ended(s *Status) bool { return s.Complete || s.Failed }

// byPrecedence returns the assignments of a pool in the order in which they are
// granted leases: first those that hold a lease, since reducing them frees capacity,
// then by descending priority.
func byPrecedence(w *desired, manager *lease.Manager) []*client.Assignment {
	has := map[string]int{}
	for _, as := range w.assignments {
		if _, ok := manager.Lease(w.key(as.ID)); !ok {
			has[as.ID] = 1
		}
	}
	return slices.SortedStableFunc(slices.Values(w.assignments), func(x, y *client.Assignment) int {
		if has[x.ID] != has[y.ID] {
			return has[x.ID] - has[y.ID]
		}
		return y.Priority - x.Priority
	})
}

// decide requests the lease of an assignment or a claim and records the decision.
func (l *leaseStore) decide(now int64, w *desired, as *client.Assignment, status Status, r *leaseDecisions) {
	key := w.key(as.ID)
	switch {
	case as.Binding == nil || ended(&status):
	case as.DesiredStatus == "run" && l.revoked[key]:
		r.of[key] = decisionReject
	case as.DesiredStatus == client.DesiredClaim && !w.silent:
		_, _ = l.manager.Grant(now, l.request(key, as)) // if it fails, other pools may lease the capacity
	case as.DesiredStatus == "run":
		r.of[key] = l.admit(now, l.request(key, as), status.Held > as.Replicas)
		if r.of[key] == decisionReject {
			l.revoked[key] = true
		}
	}
}

// admit decides whether a workload may run. A workload that loses replicas keeps its
// lease until they have ended.
func (l *leaseStore) admit(now int64, req lease.Request, shrinks bool) leaseDecision {
	old, has := l.manager.Lease(req.Key)
	switch {
	case has && old.State == lease.Stopping:
		return decisionStop
	case has && old.State == lease.Active && shrinks && covers(old.Resources, req.Resources):
		return decisionRun
	}
	granted, err := l.manager.Grant(now, req)
	switch {
	case err != nil && has && old.State == lease.Active:
		return decisionKeep
	case err != nil:
		return decisionReject
	case l.manager.Start(now, req.Key, granted.Number) != nil:
		return decisionWait
	}
	return decisionRun
}

func covers(have, want map[string]int64) bool {
	for name, amount := range want {
		if have[name] < amount {
			return false
		}
	}
	return true
}

// request returns the lease request for an assignment or a claim.
func (l *leaseStore) request(key lease.Key, as *client.Assignment) lease.Request {
	a := lease.Request{
		Key: key, Resources: map[string]int64{}, Priority: int32(as.Priority), Evicts: as.Preempts, TTL: int64(l.keep),
	}
	for name, amount := range as.Binding.Resources {
		a.Resources[name] = amount * int64(as.Replicas)
	}
	if as.Binding.KillTimeout != nil {
		a.Grace = int64(*as.Binding.KillTimeout)
	}
	return a
}
