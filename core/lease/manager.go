package lease

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrNoCapacity means that others hold the capacity and cannot be revoked for the
// request.
var ErrNoCapacity = errors.New("the member cluster has no room for the lease")

// ErrFenced means that there is no lease with this number any more, so the caller
// acts on outdated information.
var ErrFenced = errors.New("the lease is gone, or has another number")

// A Key identifies a lease by pool and by the ID of the pool's assignment or claim.
type Key struct{ Pool, ID string }

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Pool, o.Pool), cmp.Compare(k.ID, o.ID))
}

// State is the state of a lease.
type State uint8

// The states of a lease.
const (
	Reserved State = iota // capacity is reserved until Expiry
	Active                // workload runs under it, without a time limit
	Stopping              // revoked, or released by its pool, and its workload has not ended
)

func (s State) String() string { return [...]string{"waiting", "working", "stopping"}[s] }

// A Request describes the lease that a pool requires.
type Request struct {
	Key
	Resources map[string]int64
	Priority  int32
	Evicts    bool  // leases of other pools with lower priority may be revoked
	Grace     int64 // nanoseconds that its workload takes to stop
	TTL       int64 // nanoseconds for which free capacity is reserved without workload
}

// A Lease is capacity that is reserved for a pool.
type Lease struct {
	Request
	State  State
	Number uint64 // increases with every granted lease
	Expiry int64  // Unix nanoseconds; of reserved leases
	By     Key    // the lease that it was revoked for
}

// A Manager holds the leases of one member cluster. New creates it.
type Manager struct {
	capacity map[string]int64
	leases   map[Key]*Lease
	last     uint64
}

// New returns a manager of the capacity with stored leases and the last assigned
// number, as Leases returned them.
func New(capacity map[string]int64, last uint64, kept ...Lease) *Manager {
	b := &Manager{capacity: maps.Clone(capacity), leases: map[Key]*Lease{}, last: last}
	for _, l := range kept {
		b.leases[l.Key] = &l
		b.last = max(b.last, l.Number)
	}
	return b
}

// Leases returns all leases, ascending by pool and ID, and the last assigned
// number. The agent stores them before it answers a request.
func (b *Manager) Leases() (list []Lease, last uint64) {
	for _, l := range b.leases {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(x, y Lease) int { return x.compare(y.Key) })
	return list, b.last
}

// Resize changes the capacity of the cluster. If it is less than what is reserved,
// no lease is revoked: nothing more is granted until enough leases have ended.
func (b *Manager) Resize(capacity map[string]int64) { b.capacity = maps.Clone(capacity) }

// Lease returns the lease of a key; it returns false if there is none.
func (b *Manager) Lease(key Key) (Lease, bool) {
	if l := b.leases[key]; l != nil {
		return *l, true
	}
	return Lease{}, false
}

// Grant reserves capacity for a request and returns the lease. If the same request
// is repeated, it extends and returns the existing lease; a request with other
// resources or another priority replaces it under a new number. If capacity is
// missing, leases of other pools with strictly lower priority are revoked, the
// lowest first, and no more of them than required. It returns ErrNoCapacity,
// without revoking any, if that is not enough, and ErrFenced if the lease was
// revoked.
func (b *Manager) Grant(now int64, ask Request) (Lease, error) {
	b.Expire(now)
	old := b.leases[ask.Key]
	switch {
	case old == nil:
	case old.State == Stopping:
		return Lease{}, fmt.Errorf("%w: %s was revoked for pool %s", ErrFenced, ask.ID, old.By.Pool)
	case maps.Equal(old.Resources, ask.Resources) && old.Priority == ask.Priority:
		old.Expiry = max(old.Expiry, now+ask.TTL)
		return *old, nil
	}
	victims, ok := b.victims(ask)
	if old != nil && old.State == Active { // its workload runs already and cannot wait for others to stop
		ok = ok && len(victims) == 0 && b.canStart(ask)
	}
	if !ok {
		return Lease{}, fmt.Errorf("%w: %s of pool %s", ErrNoCapacity, ask.ID, ask.Pool)
	}
	b.last++
	l := &Lease{Request: ask, Number: b.last, Expiry: now + ask.TTL}
	if old != nil {
		l.State = old.State
	}
	for _, v := range victims {
		l.Expiry = max(l.Expiry, now+v.Grace+ask.TTL)
		if v.State == Reserved { // nothing runs that has to stop
			delete(b.leases, v.Key)
			continue
		}
		v.State, v.By = Stopping, ask.Key
	}
	b.leases[ask.Key] = l
	return *l, nil
}

// victims returns the leases that a request revokes; it returns false if all of
// them would not suffice.
func (b *Manager) victims(ask Request) (picked []*Lease, ok bool) {
	need := b.shortage(ask)
	if covered(need) {
		return nil, true
	}
	var below []*Lease
	for _, l := range b.leases {
		if ask.Evicts && l.Pool != ask.Pool && l.Priority < ask.Priority && l.State != Stopping {
			below = append(below, l)
		}
	}
	slices.SortFunc(below, func(x, y *Lease) int {
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Number, x.Number)) // of equals, the newest first
	})
	for _, l := range below {
		if covered(need) {
			break
		}
		picked = append(picked, l)
		add(need, l.Resources, -1)
	}
	if !covered(need) {
		return nil, false
	}
	for k, l := range slices.Backward(picked) {
		if add(need, l.Resources, 1); covered(need) {
			picked = slices.Delete(picked, k, k+1)
		} else {
			add(need, l.Resources, -1)
		}
	}
	return picked, true
}

// shortage returns the amounts that are missing for a request when all revoked
// leases have ended. The capacity of an older lease of the same key counts as free.
func (b *Manager) shortage(ask Request) map[string]int64 {
	need := maps.Clone(ask.Resources)
	for name := range need {
		need[name] -= b.capacity[name]
	}
	for _, l := range b.leases { // any order: sums
		if l.State != Stopping && l.Key != ask.Key {
			add(need, l.Resources, 1)
		}
	}
	return need
}

// add adds to the names that are needed, and to no others.
func add(need, what map[string]int64, sign int64) {
	for name := range need {
		need[name] += sign * what[name]
	}
}

func covered(need map[string]int64) bool {
	for _, n := range need {
		if n > 0 {
			return false
		}
	}
	return true
}

// Start allows workload to start under a lease. It returns ErrFenced if there is no
// lease with this number, and ErrNoCapacity while revoked leases have not ended.
func (b *Manager) Start(now int64, key Key, number uint64) error {
	b.Expire(now)
	l := b.leases[key]
	if l == nil || l.Number != number || l.State == Stopping {
		return fmt.Errorf("%w: %s, number %d", ErrFenced, key.ID, number)
	}
	if l.State == Active {
		return nil
	}
	if !b.canStart(l.Request) {
		return fmt.Errorf("%w yet: the leases revoked for it are still stopping", ErrNoCapacity)
	}
	l.State = Active
	return nil
}

// MarkStopping records that the pool itself stops the workload of a lease: its
// capacity may be reserved again, and is free after Release.
func (b *Manager) MarkStopping(key Key) {
	if l := b.leases[key]; l != nil && l.State == Active {
		l.State, l.By = Stopping, key
	}
}

// canStart reports whether a request fits alongside all running and stopping
// workload.
func (b *Manager) canStart(ask Request) bool {
	need := maps.Clone(ask.Resources)
	for name := range need {
		need[name] -= b.capacity[name]
	}
	for _, o := range b.leases { // any order: sums
		if o.Key != ask.Key && o.State != Reserved {
			add(need, o.Resources, 1)
		}
	}
	return covered(need)
}

// Release ends a lease: its workload has ended, or never started. It does nothing
// if there is no lease with this number.
func (b *Manager) Release(key Key, number uint64) {
	if l := b.leases[key]; l != nil && l.Number == number {
		delete(b.leases, key)
	}
}

// Expire drops reserved leases that have expired. All other methods with a time do
// so as well.
func (b *Manager) Expire(now int64) {
	maps.DeleteFunc(b.leases, func(_ Key, l *Lease) bool { return l.State == Reserved && l.Expiry <= now })
}

// ForeignLeases returns the leases of other pools that reduce the capacity for a
// pool, ascending by pool and ID. The agent reports them to that pool, which counts
// them as claims.
func (b *Manager) ForeignLeases(now int64, pool string) (list []Lease) {
	b.Expire(now)
	all, _ := b.Leases()
	return slices.DeleteFunc(all, func(l Lease) bool { return l.Pool == pool })
}
