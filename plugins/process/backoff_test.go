//go:build unix

package process

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func TestBackoff_DoublesDelayAndThenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := backoff{restart: Restart{}.withDefaults()}
		why := errors.New("it is Sunday")
		for n, want := range []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			round := s.currentEpoch()
			if _, left := s.recordFailure(round, why); left != 4-n {
				t.Errorf("after %d losses %d failures are left", n+1, left)
			}
			s.recordFailure(round, why) // a concurrent process of the same epoch dies for the same reason
			began := time.Now()
			if err := s.wait(nil); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(began); d != want {
				t.Errorf("start %d waited %v, want %v", n+2, d, want)
			}
		}
		s.recordFailure(s.currentEpoch(), why)
		err := s.wait(nil)
		wantFault(t, err, policy.FaultGuest, "5 times in a row", "it is Sunday", "load it again")
		if !errors.Is(err, ErrTooManyFailures) {
			t.Errorf("%v is not ErrTooManyFailures", err)
		}
	})
}

func TestBackoff_ResetsAfterAnswer(t *testing.T) {
	s := backoff{restart: Restart{FirstDelay: 1, MaxDelay: 1, MaxFailures: 2}}
	for range 10 {
		old := s.currentEpoch()
		s.recordFailure(old, errors.New("x"))
		s.reset(old) // from a process that was started before the loss: ignored
		if s.failures != 1 {
			t.Fatalf("%d strikes", s.failures)
		}
		s.reset(s.currentEpoch())
	}
	if err := s.wait(nil); err != nil {
		t.Error(err)
	}
}

func TestBackoff_WaitEndsWithHost(t *testing.T) {
	s := backoff{restart: Restart{FirstDelay: time.Hour, MaxDelay: time.Hour, MaxFailures: 9}}
	s.recordFailure(0, errors.New("x"))
	s.recordFailure(1, errors.New("x"))
	done := make(chan struct{})
	close(done)
	wantFault(t, s.wait(done), policy.FaultHost)
}

func TestModule_FailsUntilLoadedAgain(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "panics", policy.Limits{})
	for range 5 {
		wantFault(t, callSelect(start(t, m)), policy.FaultGuest, "panic: no such row: 17")
	}
	_, err := m.Start(sdk.NewConfig(nil, nil))
	wantFault(t, err, policy.FaultGuest, "5 times in a row", "no such row: 17", "load it again")
	start(t, load(t, h, "panics", policy.Limits{}))
}

func TestModule_CountsConcurrentLossesOnce(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "every third call", policy.Limits{})
	for range 8 {
		i := start(t, m)
		for n := range 3 {
			if err := callSelect(i); (err != nil) != (n == 2) {
				t.Fatalf("call %d: %v", n, err)
			}
		}
	}
}
