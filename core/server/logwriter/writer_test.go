package logwriter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

type noLeader struct{}

func (noLeader) Leader() (id, addr string) { return "", "" }

// An entry that was submitted may take effect, whatever ended the wait for it. Only an entry
// that was never submitted may be reported as not written.
func TestUnwritten_DistinguishesUnknownOutcomes(t *testing.T) {
	unknown := replication.ErrUnknownOutcome
	for _, c := range []struct {
		err  error
		want apierror.Code
	}{
		{unknown, apierror.CodeUnknownOutcome},
		{fmt.Errorf("%w: %w", unknown, context.DeadlineExceeded), apierror.CodeUnknownOutcome},
		{fmt.Errorf("%w: %w", unknown, context.Canceled), apierror.CodeUnknownOutcome},
		{fmt.Errorf("%w: %w", unknown, replication.ErrNotLeader), apierror.CodeUnknownOutcome}, // a part of a split entry was written
		{context.DeadlineExceeded, apierror.CodeUnavailable},
		{replication.ErrBusy, apierror.CodeUnavailable},
		{replication.ErrNotLeader, apierror.CodeNoLeader},
		{replication.ErrTooLarge, apierror.CodeTooLarge},
	} {
		err := Unwritten("s1", noLeader{}, c.err)
		if apierror.CodeOf(err) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v is reported as %s, want %s: %v", c.err, apierror.CodeOf(err), c.want, err)
		}
	}
}
