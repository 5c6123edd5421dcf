package clock_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestVirtual_FiresInOrderOfTimeThenOfStart(t *testing.T) {
	v := clock.NewVirtual(epoch)
	var fired []string
	note := func(s string) func() {
		return func() { fired = append(fired, s+v.Now().Sub(epoch).String()) }
	}
	v.AfterFunc(2*time.Second, note("b@"))
	v.AfterFunc(time.Second, note("a@"))
	v.AfterFunc(2*time.Second, note("c@"))
	v.AfterFunc(3*time.Second, note("late@"))

	v.AdvanceTo(epoch.Add(2 * time.Second))

	if want := []string{"a@1s", "b@2s", "c@2s"}; !slices.Equal(fired, want) {
		t.Errorf("fired %v, want %v", fired, want)
	}
	if at, ok := v.Next(); !ok || !at.Equal(epoch.Add(3*time.Second)) {
		t.Errorf("next is %v %v, want the late one", at, ok)
	}
}

func TestVirtual_CallbackSetsTimerThatIsDueInTheSameAdvance(t *testing.T) {
	v := clock.NewVirtual(epoch)
	var at []time.Duration
	var tick func()
	tick = func() {
		at = append(at, v.Now().Sub(epoch))
		v.AfterFunc(time.Second, tick)
	}
	v.AfterFunc(0, tick)
	v.AdvanceTo(epoch.Add(2500 * time.Millisecond))

	if want := []time.Duration{0, time.Second, 2 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("ticked at %v, want %v", at, want)
	}
	if now := v.Now(); !now.Equal(epoch.Add(2500 * time.Millisecond)) {
		t.Errorf("now is %v", now)
	}
}

func TestVirtual_StopAndReset(t *testing.T) {
	v := clock.NewVirtual(epoch)
	n := 0
	timer := v.AfterFunc(time.Second, func() { n++ })
	if !timer.Stop() || timer.Stop() {
		t.Error("the first Stop finds the timer pending, the second does not")
	}
	if _, ok := v.Next(); ok {
		t.Error("a stopped timer is not pending")
	}
	if timer.Reset(time.Second) {
		t.Error("Reset of a stopped timer found it pending")
	}
	if !timer.Reset(3 * time.Second) {
		t.Error("Reset of a running timer found it not pending")
	}
	v.AdvanceTo(epoch.Add(2 * time.Second))
	v.AdvanceTo(epoch.Add(3 * time.Second))
	v.AdvanceTo(epoch.Add(9 * time.Second))
	if n != 1 {
		t.Errorf("fired %d times, want 1", n)
	}
}

func TestVirtual_TimeDoesNotGoBack(t *testing.T) {
	v := clock.NewVirtual(epoch)
	v.AdvanceTo(epoch.Add(-time.Hour))
	if !v.Now().Equal(epoch) {
		t.Errorf("now is %v", v.Now())
	}
}

// Against a sorted list: the timers that fire, their time and their order.
func TestVirtual_AgainstSortedList(t *testing.T) {
	type pending struct {
		at time.Time
		id int
	}
	rapid.Check(t, func(t *rapid.T) {
		v := clock.NewVirtual(epoch)
		var fired, want []int
		var model []pending
		timers := map[int]clock.Timer{}
		drop := func(id int) bool {
			n := len(model)
			model = slices.DeleteFunc(model, func(p pending) bool { return p.id == id })
			return len(model) < n
		}
		add := func(id int, d time.Duration) {
			at := v.Now().Add(d)
			i := slices.IndexFunc(model, func(p pending) bool { return p.at.After(at) })
			if i < 0 {
				i = len(model)
			}
			model = slices.Insert(model, i, pending{at, id})
		}
		secs := rapid.IntRange(0, 5)
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				d, id := time.Duration(secs.Draw(t, "d"))*time.Second, len(timers)
				add(id, d)
				timers[id] = v.AfterFunc(d, func() { fired = append(fired, id) })
			},
			"stop": func(t *rapid.T) {
				id := rapid.IntRange(0, 20).Draw(t, "id")
				if tm := timers[id]; tm != nil && tm.Stop() != drop(id) {
					t.Fatalf("Stop disagrees on timer %d", id)
				}
			},
			"reset": func(t *rapid.T) {
				id := rapid.IntRange(0, 20).Draw(t, "id")
				d := time.Duration(secs.Draw(t, "d")) * time.Second
				if tm := timers[id]; tm != nil {
					if tm.Reset(d) != drop(id) {
						t.Fatalf("Reset disagrees on timer %d", id)
					}
					add(id, d)
				}
			},
			"advance": func(t *rapid.T) {
				to := v.Now().Add(time.Duration(secs.Draw(t, "to")) * time.Second)
				for len(model) > 0 && !model[0].at.After(to) {
					want, model = append(want, model[0].id), model[1:]
				}
				v.AdvanceTo(to)
			},
			"": func(t *rapid.T) {
				if !slices.Equal(fired, want) {
					t.Fatalf("fired %v, want %v", fired, want)
				}
				at, ok := v.Next()
				if ok != (len(model) > 0) || ok && !at.Equal(model[0].at) {
					t.Fatalf("next is %v %v, want %v", at, ok, model)
				}
			},
		})
	})
}

func TestReal_Advances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock.Clock = clock.Real{}
		start, done := c.Now(), make(chan time.Duration, 1)
		c.AfterFunc(time.Minute, func() { done <- c.Now().Sub(start) })
		if d := <-done; d != time.Minute {
			t.Errorf("fired after %v", d)
		}
	})
}
