package state_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// A rate counts the evictions of started allocations in the window that ends now,
// and those of the whole namespace if it has no labels. Evictions outside the
// window are dropped, and another version of the budget retains those recorded
// before.
func TestEvictionRate_CountsTheWindow(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	d := rand.New(rand.NewPCG(1, 2))
	txn := s.Begin(2)
	high := jobOf("high", 90)
	if err := txn.JobWriter().Upsert(high); err != nil {
		t.Fatal(err)
	}
	for _, app := range []string{"web", "api"} {
		j := jobOf(app, 20)
		j.Groups[0].Labels = map[string]string{"app": app}
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
	}
	rate := &model.Rate{Number: 3, Window: time.Minute}
	budget := func(name string, labels map[string]string) *model.Budget {
		return &model.Budget{Namespace: "default", Name: name, Labels: labels, MaxEvictions: rate, Strict: true}
	}
	txn.BudgetWriter().Upsert(budget("all", nil))
	txn.BudgetWriter().Upsert(budget("web", map[string]string{"app": "web"}))
	other := budget("other", nil)
	other.Namespace = "other"
	txn.BudgetWriter().Upsert(other)
	checked(t, txn)

	var evicted []struct {
		at  int64
		app string
	}
	for i := range 400 {
		at := int64(i) * int64(5*time.Second)
		index := uint64(3 + i)
		txn := s.Begin(index)
		app := []string{"web", "api"}[d.IntN(2)]
		a := allocOf(txn, fmt.Sprint("r", i), app, "n0")
		a.Started = d.IntN(4) > 0
		txn.AllocWriter().Upsert(a)
		if d.IntN(3) > 0 {
			victim := *txn.Alloc(a.ID)
			victim.Desired, victim.EndTime = model.DesiredEvict, at
			txn.AllocWriter().Upsert(&victim)
			if a.Started {
				evicted = append(evicted, struct {
					at  int64
					app string
				}{at, app})
			}
		} else {
			txn.AllocWriter().Delete(a.ID)
		}
		if i%50 == 0 {
			txn.BudgetWriter().Upsert(budget("web", map[string]string{"app": "web"}))
		}
		sn := checked(t, txn)
		for k, b := range sn.Budgets() {
			n := 0
			for _, e := range evicted {
				if e.at+int64(time.Minute) > at && b.Namespace == "default" && (b.Name == "all" || e.app == "web") {
					n++
				}
			}
			if got := sn.DisruptionsAllowed(int32(k), at); got != 3-n {
				t.Fatalf("at %d, budget %s has %d left, want %d", i, b.Name, got, 3-n)
			}
			more := sn.NextEvictionAt(int32(k), at)
			if (more == 0) != (n == 0) || more != 0 && sn.DisruptionsAllowed(int32(k), more) <= 3-n {
				t.Fatalf("at %d, budget %s allows more at %d", i, b.Name, more)
			}
			if len(sn.RecentEvictions(int32(k))) > 14 {
				t.Fatalf("it remembers %d", len(sn.RecentEvictions(int32(k))))
			}
		}
	}
	if len(evicted) < 100 {
		t.Errorf("only %d were evicted", len(evicted))
	}
}

// A window that reaches beyond the range of time contains every eviction.
func TestNextEvictionAt_LongestWindow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, window := range []time.Duration{math.MaxInt64, 240 * 365 * 24 * time.Hour, time.Minute} {
		rate := &model.Rate{Number: 1, Window: window}
		if at := now - int64(time.Second); !rate.Contains(at, now) || !rate.Contains(now, now) {
			t.Errorf("%v does not contain an eviction one second ago", window)
		}
		if rate.Contains(now-int64(time.Minute), now) != (window > time.Minute) {
			t.Errorf("%v: wrong answer for an eviction one minute ago", window)
		}
	}
	txn := seeded(t).Begin(2)
	j := jobOf("web", 20)
	j.Groups[0].Labels = map[string]string{"app": "web"}
	if err := txn.JobWriter().Upsert(j); err != nil {
		t.Fatal(err)
	}
	txn.BudgetWriter().Upsert(&model.Budget{Namespace: "default", Name: "b", Strict: true, MaxEvictions: &model.Rate{Number: 1, Window: math.MaxInt64}})
	a := allocOf(txn, "a", "web", "n0")
	a.Started = true
	txn.AllocWriter().Upsert(a)
	victim := *a
	victim.Desired, victim.EndTime = model.DesiredEvict, now
	txn.AllocWriter().Upsert(&victim)
	sn := checked(t, txn)
	later := now + int64(24*time.Hour)
	if left, next := sn.DisruptionsAllowed(0, later), sn.NextEvictionAt(0, later); left != 0 || next != 0 {
		t.Errorf("a day after the eviction %d are allowed, the next one at %d; want 0 and never", left, next)
	}
}
