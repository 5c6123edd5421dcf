package clock

import (
	"context"
	"errors"
	"time"
)

// WithTimeout is context.WithTimeout by a clock. The cause of a context that timed
// out is context.DeadlineExceeded.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := c.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// Sleep waits until d has passed by a clock. It returns false if ctx ends first.
func Sleep(ctx context.Context, c Clock, d time.Duration) bool {
	limited, cancel := WithTimeout(ctx, c, d)
	defer cancel()
	<-limited.Done()
	return errors.Is(context.Cause(limited), context.DeadlineExceeded) && ctx.Err() == nil
}
