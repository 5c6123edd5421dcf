package lease

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ErrNoCapacity means that the room is held by others, who may not be revoked for it.
var ErrNoCapacity = errors.New("the member cluster has no room for the lease")

// ErrFenced means that a lease with this number is not there any more: whoever
// still acts by it comes too late.
var ErrFenced = errors.New("the lease is gone, or has another number")

// Key names a lease: what a pool calls the assignment or the claim that it is for.
type Key struct{ Pool, ID string }

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Pool, o.Pool), cmp.Compare(k.ID, o.ID))
}

// State is what becomes of a lease.
type State uint8

// The states of a lease.
const (
	Reserved State = iota // the room is kept until Expiry
	Active                // work runs under it, for as long as it wants
	Stopping              // it was revoked, and what runs under it has yet to go
)

func (s State) String() string { return [...]string{"waiting", "working", "stopping"}[s] }

// Request is what a pool wants a lease for.
type Request struct {
	Key
	Resources map[string]int64
	Priority  int32
	Evicts    bool  // others' leases of lower priority may be revoked for it
	Grace     int64 // nanoseconds that what runs under it takes to stop
	TTL       int64 // nanoseconds that the room is kept, once it is free, without work under it
}

// Lease is room that is kept for a pool.
type Lease struct {
	Request
	State  State
	Number uint64 // rises with every lease that is granted
	Expiry int64  // Unix nanoseconds; of what waits
	By     Key    // for whom it was revoked
}

// Manager is the leases of one member cluster. Make it with New.
type Manager struct {
	capacity map[string]int64
	leases   map[Key]*Lease
	last     uint64
}

// New makes a book of so much capacity with leases that were kept, as Leases
// returned them, and the last number that was given out.
func New(capacity map[string]int64, last uint64, kept ...Lease) *Manager {
	b := &Manager{capacity: maps.Clone(capacity), leases: map[Key]*Lease{}, last: last}
	for _, l := range kept {
		b.leases[l.Key] = &l
		b.last = max(b.last, l.Number)
	}
	return b
}

// Leases is all leases, ascending by pool and id, and the last number: what an
// agent writes down before it lets anybody know.
func (b *Manager) Leases() (list []Lease, last uint64) {
	for _, l := range b.leases {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(x, y Lease) int { return x.compare(y.Key) })
	return list, b.last
}

// Resize changes what the cluster has. Where that is less than was given out,
// nobody is revoked: nothing more is given out until enough has ended.
func (b *Manager) Resize(capacity map[string]int64) { b.capacity = maps.Clone(capacity) }

// Lease is the lease of a key; false: there is none.
func (b *Manager) Lease(key Key) (Lease, bool) {
	if l := b.leases[key]; l != nil {
		return *l, true
	}
	return Lease{}, false
}

// Grant keeps room for an ask, and returns the lease. Asking again for the same
// is answered by the same lease, which is kept for longer; an ask that is larger
// or of another priority is a new one in its place, under a new number. Where the
// room is not there, leases of other pools are revoked that have strictly lower
// priority, the lowest first, and no more of them than are needed; with ErrNoRoom
// nothing is.
func (b *Manager) Grant(now int64, ask Request) (Lease, error) {
	b.Expire(now)
	old := b.leases[ask.Key]
	switch {
	case old == nil:
	case old.State == Stopping:
		return Lease{}, fmt.Errorf("%w: %s was revoked for %s", ErrFenced, ask.ID, old.By.Pool)
	case maps.Equal(old.Resources, ask.Resources) && old.Priority == ask.Priority:
		old.Expiry = max(old.Expiry, now+ask.TTL)
		return *old, nil
	}
	victims, ok := b.victims(ask)
	if old != nil && old.State == Active { // it works already: nobody's leaving can be waited for
		ok = ok && len(victims) == 0 && b.runs(ask)
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
		if v.State == Reserved { // nothing runs that would have to stop
			delete(b.leases, v.Key)
			continue
		}
		v.State, v.By = Stopping, ask.Key
	}
	b.leases[ask.Key] = l
	return *l, nil
}

// victims are whom an ask revokes; false: all of them would not be enough.
func (b *Manager) victims(ask Request) (picked []*Lease, ok bool) {
	need := b.lack(ask)
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
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(y.Number, x.Number)) // of equals who came last
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

// lack is what the cluster has too little of for an ask, when all that was revoked
// is gone. An ask in the place of an older one has its room.
func (b *Manager) lack(ask Request) map[string]int64 {
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

// add adds to what is needed, and to no other names.
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

// Start lets work begin under a lease. It fails with ErrFenced when the lease is
// not there under this number, and with ErrNoRoom while others have yet to leave.
func (b *Manager) Start(now int64, key Key, number uint64) error {
	b.Expire(now)
	l := b.leases[key]
	if l == nil || l.Number != number || l.State == Stopping {
		return fmt.Errorf("%w: %s, number %d", ErrFenced, key.ID, number)
	}
	if l.State == Active {
		return nil
	}
	if !b.runs(l.Request) {
		return fmt.Errorf("%w yet: what it was revoked for is still stopping", ErrNoCapacity)
	}
	l.State = Active
	return nil
}

// MarkStopping notes that the pool itself wants what runs under a lease gone: its room may
// be promised again, and is free once End says so.
func (b *Manager) MarkStopping(key Key) {
	if l := b.leases[key]; l != nil && l.State == Active {
		l.State, l.By = Stopping, key
	}
}

// runs is whether an ask has room beside all that works and all that has yet to
// go.
func (b *Manager) runs(ask Request) bool {
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

// Release gives a lease back: its work is gone, or was never begun. One that is not
// there under the number has ended already.
func (b *Manager) Release(key Key, number uint64) {
	if l := b.leases[key]; l != nil && l.Number == number {
		delete(b.leases, key)
	}
}

// Expire drops what waited too long; whatever else takes the time does so, too.
func (b *Manager) Expire(now int64) {
	maps.DeleteFunc(b.leases, func(_ Key, l *Lease) bool { return l.State == Reserved && l.Expiry <= now })
}

// ForeignLeases is the leases of all pools but one that keep room from it, ascending by
// pool and id: what the agent tells that pool, which counts them as claims.
func (b *Manager) ForeignLeases(now int64, pool string) (list []Lease) {
	b.Expire(now)
	all, _ := b.Leases()
	return slices.DeleteFunc(all, func(l Lease) bool { return l.Pool == pool })
}
