package bench

import (
	"context"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	pollEvery = 5 * time.Millisecond
	// still is the duration without activity after which a phase has ended. It
	// exceeds the interval at which servers batch garbage collection.
	still = 600 * time.Millisecond
)

// busy returns the number of evaluations in the broker that require processing.
func busy(s *client.BrokerStatus) int {
	return s.Ready + s.Unacked + s.Pending + s.Backoff + s.Cancelable + s.Failed
}

// moment is a time and the newest log index at that time.
type moment struct {
	at    time.Time
	index uint64
}

// quiet waits until the broker is idle and returns the time since which it is. If
// written is set, the log must be idle as well.
func (t *Target) quiet(ctx context.Context, what string, written bool) (moment, error) {
	var since moment
	most := 0
	for {
		s, err := t.c.Operator().BrokerStatus(ctx)
		if err != nil {
			return since, err
		}
		now := moment{at: time.Now()}
		if now.index, err = t.index(ctx); err != nil {
			return since, err
		}
		n := busy(s)
		most = max(most, n)
		t.show(what, most-n, most)
		switch {
		case n > 0:
			since = moment{}
		case since.at.IsZero() || written && now.index != since.index:
			since = now
		case now.at.Sub(since.at) >= still:
			return since, nil
		}
		if err := t.probe(ctx); err != nil {
			return since, err
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return since, err
		}
	}
}

// until polls until the condition holds, and reports progress.
func (t *Target) until(ctx context.Context, what string, total int, every time.Duration, done func() (int, error)) error {
	for {
		n, err := done()
		if err != nil {
			return err
		}
		t.show(what, n, total)
		if n >= total {
			return nil
		}
		if err := t.probe(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, every); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
