package watch

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/kube/apiservertest"
)

// A replica is a candidate that can be cut off from the API server.
type replica struct {
	*Elector
	offline atomic.Bool
	stop    context.CancelFunc
	ended   chan struct{}
}

// cutOff fails requests while the replica is offline.
type cutOff struct {
	next    http.RoundTripper
	replica *replica
}

func (c cutOff) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.replica.offline.Load() {
		return nil, fmt.Errorf("no route to host")
	}
	return c.next.RoundTrip(r)
}

func newReplica(t *testing.T, s *apiservertest.Server, name string) *replica {
	t.Helper()
	r := &replica{ended: make(chan struct{})}
	config := s.Config()
	config.Transport = cutOff{config.Transport, r}
	var err error
	r.Elector, err = NewElector(config, LeaseConfig{Namespace: "cede", Name: "cede", Identity: name, Duration: 15 * time.Second}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() {
		defer close(r.ended)
		r.Run(ctx)
	}()
	return r
}

// leaders returns the names of the leaders, and waits until all timers of now have run.
func leaders(all ...*replica) string {
	synctest.Wait()
	var names []string
	for _, r := range all {
		if r.Leads() == nil {
			names = append(names, r.config.Identity)
		}
	}
	return strings.Join(names, " ")
}

// until waits for a leader, in virtual time, and returns how long that took.
func until(t *testing.T, want string, all ...*replica) time.Duration {
	t.Helper()
	from := time.Now()
	for leaders(all...) != want {
		if time.Since(from) > time.Hour {
			t.Fatalf("%q leads after an hour, want %q", leaders(all...), want)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(from)
}

func TestElector_HandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.NewInProcess()
		a := newReplica(t, s, "a")
		if took := until(t, "a", a); took > 0 {
			t.Errorf("the first replica waits %v, want no wait", took)
		}
		b := newReplica(t, s, "b")
		time.Sleep(time.Minute)
		if got := leaders(a, b); got != "a" {
			t.Fatalf("%q leads, want a", got)
		}
		if err := b.Leads(); err == nil || !strings.Contains(err.Error(), "held by a") {
			t.Errorf("got %v, want the name of the holder", err)
		}
		a.stop()
		<-a.ended
		if took := until(t, "b", a, b); took < handover || took > handover+3*time.Second {
			t.Errorf("b leads %v after the release, want soon after %v", took, handover)
		}
		// b loses its connection. It stops leading before another replica begins.
		c := newReplica(t, s, "c")
		time.Sleep(time.Minute)
		b.offline.Store(true)
		lost := until(t, "", b, c)
		acquired := lost + until(t, "c", b, c)
		if lost > 10*time.Second || acquired < 15*time.Second || acquired > 25*time.Second {
			t.Errorf("b leads for %v and c from %v, want at most 10s and from 15s to 25s", lost, acquired)
		}
		b.offline.Store(false)
		time.Sleep(time.Minute)
		if got := leaders(b, c); got != "c" {
			t.Errorf("%q leads after b is back, want c", got)
		}
		for _, r := range []*replica{b, c} {
			r.stop()
			<-r.ended
		}
	})
}

// Random model test: replicas stop, start and lose their connections at random. At most
// one leads at any time, and one leads again after the faults.
func TestElector_NeverHasTwoLeaders(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random, s := rand.New(rand.NewPCG(seed, 1)), apiservertest.NewInProcess()
			var all []*replica
			for i := range 3 {
				all = append(all, newReplica(t, s, fmt.Sprint(i)))
			}
			changes, last := 0, ""
			for range 2000 {
				time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
				now := leaders(all...)
				if strings.Contains(now, " ") {
					t.Fatalf("seed %d: %s lead at once", seed, now)
				}
				if now != "" && now != last {
					changes, last = changes+1, now
				}
				switch i := random.IntN(len(all)); random.IntN(40) {
				case 0:
					all[i].offline.Store(!all[i].offline.Load())
				case 1:
					all[i].stop()
					<-all[i].ended
					all[i] = newReplica(t, s, fmt.Sprintf("%d-%d", i, random.Uint32()))
				}
			}
			if changes < 3 {
				t.Errorf("seed %d: %d changes of the leader, want more", seed, changes)
			}
			for _, r := range all {
				r.offline.Store(false)
			}
			time.Sleep(time.Minute)
			if now := leaders(all...); now == "" {
				t.Errorf("seed %d: no leader a minute after the faults", seed)
			}
			for _, r := range all {
				r.stop()
				<-r.ended
			}
		})
	}
}
