package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// A value that the state refuses must not fail the other values of its batch.
func TestBatcher_RefusalAffectsItsCallerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var batches []int
		release := make(chan struct{})
		write := func(_ context.Context, values []int) (*replication.Result, error) {
			if len(batches) == 0 {
				<-release // so that the other values form one batch
			}
			batches = append(batches, len(values))
			if slices.Contains(values, 4) {
				return &replication.Result{Err: &replication.Refusal{Code: replication.CodeInvalid}}, nil
			}
			return &replication.Result{Index: 7}, nil
		}
		var g Group
		b := New(&g, Config[int]{Clock: clock.Real{}, Limit: func() int { return 100 }, Write: write})
		if _, err := b.Add(ctx, 0); err == nil {
			t.Error("a batcher that was not started accepts a value")
		}
		g.Start(ctx)
		var group sync.WaitGroup
		errs := make([]error, 11)
		for i := range errs {
			group.Go(func() { _, errs[i] = b.AddIndex(ctx, i) })
			synctest.Wait()
		}
		close(release)
		group.Wait()
		for i, err := range errs {
			if refusal, ok := errors.AsType[*replication.Refusal](err); ok != (i == 4) || ok && refusal.Code != replication.CodeInvalid {
				t.Errorf("value %d: %v", i, err)
			}
		}
		if want := []int{1, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(batches, want) {
			t.Errorf("batches of %v, want %v", batches, want)
		}
		cancel()
		g.Wait()
		if _, err := b.Add(t.Context(), 0); err == nil {
			t.Error("a batcher that was stopped accepts a value")
		}
	})
}

// A caller that gives up learns that its value was not written, or that the outcome is
// unknown. A value that is still queued is withdrawn.
func TestBatcher_ReportsWhetherValueWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release, written := make(chan struct{}), []int{}
		write := func(_ context.Context, values []int) (*replication.Result, error) {
			<-release
			written = append(written, values...)
			return &replication.Result{Index: 1}, nil
		}
		var g Group
		b := New(&g, Config[int]{Clock: clock.Real{}, Limit: func() int { return 100 }, Write: write})
		g.Start(t.Context())
		errs := make([]error, 2)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { _, errs[i] = b.Add(ctx, i) })
			synctest.Wait()
		}
		cancel()
		group.Wait()
		close(release)
		g.Wait()
		for i, want := range []apierror.Code{apierror.CodeUnknownOutcome, apierror.CodeUnavailable} {
			if got := apierror.CodeOf(errs[i]); got != want {
				t.Errorf("value %d: %s, want %s", i, got, want)
			}
		}
		if !slices.Equal(written, []int{0}) {
			t.Errorf("wrote %v, want the value that was being written", written)
		}
	})
}
