package job

import (
	"context"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A waiter waits for the evaluation of a job.
type waiter struct {
	conn    *cmdutil.Connection
	timeout time.Duration
	done    string // the write that stays in effect if the wait fails

	round int    // number of responses in which the evaluation was pending
	why   string // reason that was printed last; "" if it is being processed
}

// await waits until an evaluation is terminal or blocked. It follows the evaluations that
// supersede it, in the namespace of the job, because a token can be limited to that.
func (w *waiter) await(ctx context.Context, v *runView) (*client.Evaluation, error) {
	limited, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	progress := w.conn.Env.Progress()
	defer progress.Done()
	id, q := v.EvalID, &client.QueryOptions{Namespace: v.Namespace}
	for ; ; w.round++ {
		e, meta, err := w.conn.Client.Evaluations().Get(limited, id, q)
		switch {
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			return nil, w.timeoutError(id)
		case err != nil:
			return nil, cmdutil.InterruptError(ctx, err)
		case e.Status == "cancelled" && e.SupersededBy != "":
			id, q.Index = e.SupersededBy, 0
			continue
		case e.Status != "pending":
			return e, nil
		}
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("evaluation %s is %s for %s", id, e.Status, cmdutil.FormatAge(elapsed))
		})
		w.warn(limited, meta)
		if q.Index, q.Wait = meta.LastIndex, w.pollTime(); q.Index == 0 {
			w.conn.Env.Sleep(limited, 200*time.Millisecond) // the response has no index to wait for
		}
	}
}

// pollTime returns the timeout of a blocking query for an evaluation. The first round
// is short, because most evaluations complete at once, and a reason for a delay should be
// reported early.
func (w *waiter) pollTime() time.Duration {
	if w.round == 0 {
		return time.Second
	}
	return 5 * time.Second
}

// warn prints why the evaluation is pending, unless it equals the reason that was printed
// last. In the first round only lasting reasons are printed.
func (w *waiter) warn(ctx context.Context, meta *client.QueryMeta) {
	why, isLasting := apiview.PendingReason(ctx, w.conn, meta)
	if w.round == 0 && !isLasting {
		return
	}
	if why != "" && why != w.why {
		w.conn.Env.Warn(fmt.Sprintf("%s; the command waits for at most %v, and with --detach not at all", why, w.timeout))
	}
	w.why = why
}

// timeoutError returns the error of an evaluation that is pending for too long.
func (w *waiter) timeoutError(id string) error {
	hint := w.done + "; `cede eval status " + id + "` shows its status, and `cede eval cancel " + id + "` cancels it"
	if w.why != "" {
		hint = w.why + "; " + hint
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("evaluation %s is not complete after %v", id, w.timeout), Hint: hint,
	}
}
