package lease_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/lease"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func ask(pool, id string, units int64, priority int32) lease.Request {
	return lease.Request{
		Key: lease.Key{Pool: pool, ID: id}, Resources: map[string]int64{"units": units}, Priority: priority, Evicts: true, Grace: 5, TTL: 10,
	}
}

func mustGrant(t *testing.T, b *lease.Manager, now int64, a lease.Request) lease.Lease {
	t.Helper()
	l, err := b.Grant(now, a)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func book() *lease.Manager {
	return lease.New(map[string]int64{"units": 10}, 0)
}

func TestManager_ReservesCapacityForOnePoolAtATime(t *testing.T) {
	t.Parallel()
	b := book()
	mustGrant(t, b, 0, ask("a", "x", 6, 1))
	if _, err := b.Grant(0, ask("b", "y", 6, 1)); !errors.Is(err, lease.ErrNoCapacity) {
		t.Errorf("the room is promised twice: %v", err)
	}
	if got := mustGrant(t, b, 10, ask("b", "y", 6, 1)); got.Number != 2 {
		t.Errorf("after the first expired unused the second is %+v", got)
	}
}

func TestManager_RevokesTheLowestAndNoMoreThanRequired(t *testing.T) {
	t.Parallel()
	b := book()
	for _, a := range []lease.Request{ask("a", "large", 5, 2), ask("a", "small", 1, 1), ask("b", "own", 4, 0)} {
		if err := b.Start(0, a.Key, mustGrant(t, b, 0, a).Number); err != nil {
			t.Fatal(err)
		}
	}
	high := mustGrant(t, b, 0, ask("b", "high", 5, 9))
	states := map[string]lease.State{}
	leases, _ := b.Leases()
	for _, l := range leases {
		states[l.ID] = l.State
	}
	if states["large"] != lease.Stopping || states["small"] != lease.Active || states["own"] != lease.Active {
		t.Errorf("%v: want large revoked, small spared as it is not enough, and own left to its own pool", states)
	}
	if err := b.Start(1, high.Key, high.Number); !errors.Is(err, lease.ErrNoCapacity) {
		t.Errorf("started before the capacity was free: %v", err)
	}
	b.Release(leases[0].Key, leases[0].Number)
	if err := b.Start(14, high.Key, high.Number); err != nil { // the grace of the revoked lease is added to its time
		t.Error(err)
	}
}

func TestManager_RefusesOutdatedNumbers(t *testing.T) {
	t.Parallel()
	b := book()
	first := mustGrant(t, b, 0, ask("a", "x", 6, 1))
	b.Release(first.Key, first.Number)
	leases, last := b.Leases()
	b = lease.New(map[string]int64{"units": 10}, last, leases...) // another start of the agent
	second := mustGrant(t, b, 0, ask("a", "x", 6, 1))
	if second.Number <= first.Number {
		t.Errorf("number %d comes after %d", second.Number, first.Number)
	}
	if err := b.Start(0, first.Key, first.Number); !errors.Is(err, lease.ErrFenced) {
		t.Errorf("the old number still works: %v", err)
	}
	b.Release(first.Key, first.Number)
	if err := b.Start(0, second.Key, second.Number); err != nil {
		t.Errorf("the old number ended the new lease: %v", err)
	}
}

// For random requests: no capacity is reserved twice, nothing runs beyond the
// capacity, and a refused request revokes no lease.
func TestManager_InvariantsUnderRandomRequests(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(10, 500) // of 100 each
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			b, now := book(), int64(0)
			for range rapid.IntRange(1, 30).Draw(t, "steps") {
				n := func(name string, to int) int { return rapid.IntRange(0, to).Draw(t, name) }
				now += int64(n("time", 4))
				leases, last := b.Leases()
				switch kind := n("kind", 3); {
				case kind == 0 && len(leases) > 0:
					l := leases[n("which", len(leases)-1)]
					b.Release(l.Key, l.Number)
				case kind == 1 && len(leases) > 0:
					l := leases[n("which", len(leases)-1)]
					_ = b.Start(now, l.Key, l.Number)
				default:
					a := ask([]string{"a", "b"}[n("pool", 1)], string(rune('p'+n("id", 4))), int64(n("units", 8)), int32(n("priority", 3)))
					a.Evicts = n("evicts", 3) > 0
					if _, err := b.Grant(now, a); err != nil {
						after, number := b.Leases()
						checkUnmoved(t, now, leases, after)
						if number != last {
							t.Fatal("a refusal took a number")
						}
					}
				}
				checkBook(t, b)
			}
		})
	}
}

func checkUnmoved(t *rapid.T, now int64, before, after []lease.Lease) {
	states := map[lease.Key]lease.State{}
	for _, l := range after {
		states[l.Key] = l.State
	}
	for _, l := range before {
		state, there := states[l.Key]
		if expired := l.State == lease.Reserved && l.Expiry <= now; !expired && (!there || state != l.State) {
			t.Fatalf("a refusal had %+v revoked", l)
		}
	}
}

func checkBook(t *rapid.T, b *lease.Manager) {
	running, kept := int64(0), int64(0)
	leases, _ := b.Leases()
	for _, l := range leases {
		if l.State != lease.Reserved {
			running += l.Resources["units"]
		}
		if l.State != lease.Stopping {
			kept += l.Resources["units"]
		}
	}
	if running > 10 || kept > 10 {
		t.Fatalf("%d run and %d are kept: %+v", running, kept, leases)
	}
}
