package evalqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// ErrLeadershipLost means that the term of leadership is over in which a plan was
// verified, or an evaluation was delivered.
var ErrLeadershipLost = errors.New("term of leadership is over")

// Updates writes evaluations, those of many callers in one entry. An update is valid in
// the term in which Write was called and is discarded in any other.
type Updates struct {
	writer *logwriter.Writer
	batch  *groupcommit.Batcher[update]
}

// An update holds the evaluations of one caller.
type update struct {
	term  uint64 // in which it is valid
	evals []*model.Evaluation
}

// NewUpdates returns an Updates that writes at most limit evaluations per entry.
func NewUpdates(g *groupcommit.Group, w *logwriter.Writer, c clock.Clock, limit int) *Updates {
	u := &Updates{writer: w}
	u.batch = groupcommit.New(g, groupcommit.Config[update]{
		Clock: c, Limit: func() int { return limit }, Size: func(u update) int { return len(u.evals) }, Write: u.write,
	})
	return u
}

// Write writes evaluations and waits until they are applied. A refusal is in the
// result.
func (u *Updates) Write(ctx context.Context, evals ...*model.Evaluation) (*replication.Result, error) {
	return u.writeIn(ctx, u.writer.Log.Term(), evals)
}

func (u *Updates) writeIn(ctx context.Context, term uint64, evals []*model.Evaluation) (*replication.Result, error) {
	return u.batch.Add(ctx, update{term: term, evals: evals})
}

// write writes a batch if all of it is valid in the current term.
func (u *Updates) write(ctx context.Context, batch []update) (*replication.Result, error) {
	now := u.writer.Log.Term()
	var evals []*model.Evaluation
	for _, one := range batch {
		if one.term != now {
			return nil, apierror.New(apierror.CodeNoLeader, "leadership changed before the evaluations were written: nothing was written").
				WithHint("try again in a moment").
				WithCause(fmt.Errorf("%w: it was term %d, now it is %d", ErrLeadershipLost, one.term, now))
		}
		evals = append(evals, one.evals...)
	}
	return u.writer.Propose(ctx, &replication.WriteEvals{Evals: evals})
}
