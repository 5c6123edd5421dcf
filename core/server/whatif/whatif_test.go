package whatif

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
)

// hangingStates never return an earlier state.
type hangingStates struct{}

func (hangingStates) StateAt(ctx context.Context, _ uint64) (*state.Snapshot, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A server answers one request, lets a few wait, and refuses more. None waits or runs longer
// than the timeout. Then it accepts requests again.
func TestExaminer_IsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(hangingStates{}, nil, Signer{}, clock.Real{})
		d := &eventsink.Decision{}
		d.PlannedOn = 1
		for range 2 {
			began := time.Now()
			errs := make(chan error, 1+maxWaiting)
			for range 1 + maxWaiting {
				go func() {
					errs <- e.reproduce(t.Context(), d, nil, nil)
				}()
			}
			synctest.Wait()
			if err := e.reproduce(t.Context(), d, nil, nil); apierror.CodeOf(err) != apierror.CodeUnavailable || time.Since(began) != 0 {
				t.Errorf("one request too many: %v after %v", err, time.Since(began))
			}
			for range 1 + maxWaiting {
				if err := <-errs; apierror.CodeOf(err) != apierror.CodeUnavailable || time.Since(began) != timeout {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
			synctest.Wait()
		}
	})
}
