package job

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// jobRun holds the flags and the state of `cede job run`.
type jobRun struct {
	env     *cmdutil.Env
	out     *cmdutil.Output
	conn    *cmdutil.Connection
	file    *jobFile
	name    string // of the file
	plan    string
	key     string
	check   uint64
	checked bool
	planned bool // --plan was given, even if empty
	detach  bool
	timeout time.Duration
}

// detachUsage describes the flag --detach of commands that wait for an evaluation.
const detachUsage = "return after the write, without waiting for the evaluation"

func newJobRunCmd(env *cmdutil.Env) *cobra.Command {
	r := &jobRun{env: env}
	cmd := &cobra.Command{
		Use:         "run FILE",
		Short:       "Run a job and wait for its placement",
		Annotations: cmdutil.ExitCodes("5 --check-index or the plan of --plan no longer holds", "6 not every instance was placed"),
		Long: `Run a job, or update one that runs, and wait until its evaluation is complete.

If some instances cannot be placed, the command reports why; the job stays registered,
and they are placed when capacity becomes free. With --plan only the allocations that
the plan shows are evicted: instances that it does not place wait for free capacity,
until the job is run again.

The command does not wait until tasks are healthy.`,
		Example: `  cede job run web.hcl
  cede job run web.hcl --plan @plan.token
  cede job run - --detach < web.hcl`,
		Args: cmdutil.PositionalArgs(1, 1, "one job file"),
	}
	r.out, r.conn, r.file = cmdutil.OutputFlags(cmd, env), cmdutil.ConnectionFlags(cmd, env), jobFileFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&r.plan, "plan", "", "execute exactly the plan of this `TOKEN`, or fail; @FILE reads the token from a file")
	f.StringVar(&r.key, "idempotency-key", "", "`KEY` that makes a repeated request idempotent")
	f.Uint64Var(&r.check, "check-index", 0, "fail if the JobModifyIndex of the job is not `N`; 0: fail if the job exists")
	f.BoolVar(&r.detach, "detach", false, detachUsage)
	f.DurationVar(&r.timeout, "timeout", 5*time.Minute, "wait for at most `DURATION`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.checked, r.planned = f.Changed("check-index"), f.Changed("plan")
		if err := r.out.Resolve(); err != nil {
			return err
		}
		r.name = args[0]
		return r.run(cmd.Context())
	}
	return cmd
}

// runView is the result of running or stopping a job.
type runView struct {
	JobID     string
	Namespace string
	*client.JobRegisterResponse
	Evaluation  *client.Evaluation       `json:",omitempty"`
	Allocations []*client.AllocationStub `json:",omitempty"` // placed by the evaluation
}

func (r *jobRun) run(ctx context.Context) error {
	token, err := r.token()
	if err != nil {
		return err
	}
	read, err := r.file.read(r.name, r.conn.RequestedNamespace())
	if err != nil {
		return err
	}
	api, err := r.conn.Dial()
	if err != nil {
		return err
	}
	namespace := read.model.Namespace
	if r.key == "" {
		r.key = rand.Text()
	}
	options := &client.RegisterOptions{WriteOptions: client.WriteOptions{Namespace: namespace, IdempotencyKey: r.key}}
	if r.checked {
		options.Check = &r.check
	}
	answer, err := api.Jobs().Run(ctx, read.job, token, options)
	if err != nil {
		err = indexConflict(planConflict(cmdutil.InterruptError(ctx, err), token, r.file.words(r.name)), read.model.ID, r.checked)
		return r.unknownOutcome(err)
	}
	if answer.Warnings != "" {
		r.env.Warn(answer.Warnings)
	}
	v := &runView{JobID: read.model.ID, Namespace: namespace, JobRegisterResponse: answer}
	if r.detach || answer.EvalID == "" && token == "" {
		if answer.EvalID != "" {
			apiview.WarnPaused(ctx, r.conn)
		}
		return r.show(v, false)
	}
	return r.follow(ctx, api, v)
}

// unknownOutcome adds the idempotency key to the error of a registration that may have
// taken effect, so that it can be repeated without running the job twice.
func (r *jobRun) unknownOutcome(err error) error {
	if err == nil || !client.OutcomeUnknown(err) {
		return err
	}
	e := cmdutil.AsError(err)
	e.Hint = "the job may be registered: repeat the command with --idempotency-key " + r.key + ", which has no effect if it is"
	return e
}

// token returns the token of --plan, read from a file if it starts with @. An empty token
// is an error if --plan was given: the job must not run without the plan.
func (r *jobRun) token() (token string, err error) {
	token = r.plan
	if file, ok := strings.CutPrefix(r.plan, "@"); ok {
		if token, err = r.env.ReadSecret(file); err != nil {
			return "", err
		}
	}
	if r.planned && token == "" {
		return "", cmdutil.Usagef("a plan without changes has no token; remove --plan, or plan again: cede job plan "+r.file.words(r.name),
			"--plan must not be empty")
	}
	return token, nil
}

// planConflict adds a hint to the error of a plan that no longer holds; the server reports
// the differences.
func planConflict(err error, token, name string) error {
	answer, ok := errors.AsType[*client.Error](err)
	if !ok || answer.Code != client.CodeConflict || token == "" {
		return err
	}
	e := cmdutil.ServerError(answer)
	if e.Hint == "" {
		e.Hint = "create a new plan: cede job plan " + name
	}
	return e
}

// indexConflict adds a hint to the error of a job whose index is not that of --check-index.
func indexConflict(err error, id string, checked bool) error {
	answer, ok := errors.AsType[*client.Error](err)
	if !ok || !checked || !strings.Contains(answer.Message, "Enforcing job modify index") {
		return err
	}
	e := cmdutil.ServerError(answer)
	e.Hint = cmp.Or(e.Hint, "cede job status "+id+" -o json shows JobModifyIndex; --check-index 0 registers a new job only")
	return e
}

// follow waits for the evaluation and prints its result.
func (r *jobRun) follow(ctx context.Context, api *client.Client, v *runView) error {
	q := &client.QueryOptions{Namespace: v.Namespace}
	if v.EvalID != "" {
		w := waiter{conn: r.conn, timeout: r.timeout, done: "the job is registered"}
		e, err := w.await(ctx, v)
		if err != nil {
			return err
		}
		v.Evaluation = e
		if v.Allocations, _, err = api.Evaluations().Allocations(ctx, e.ID, q); err != nil {
			return cmdutil.InterruptError(ctx, err)
		}
	} else {
		all, _, err := api.Jobs().Allocations(ctx, v.JobID, q)
		if err != nil {
			return cmdutil.InterruptError(ctx, err)
		}
		for _, a := range all {
			if a.ModifyIndex >= v.Index && a.DesiredStatus == "run" {
				v.Allocations = append(v.Allocations, a)
			}
		}
	}
	if err := r.show(v, true); err != nil {
		return err
	}
	err := unplacedError(v.JobID, v.Evaluation)
	if e, ok := errors.AsType[*cmdutil.Error](err); ok && r.planned && e.Exit == cmdutil.ExitUnplaced {
		e.Hint = "the job stays registered and is placed when capacity becomes free, without further evictions; to see what it would evict now: cede job plan " + r.file.words(r.name)
	}
	return err
}

func (r *jobRun) show(v *runView, followed bool) error {
	return r.out.Show(cmdutil.Document{Data: v, Names: []string{v.JobID}, Page: func(p cmdutil.Page) {
		what := "Job " + v.JobID + " is registered"
		if v.Replayed {
			what = "Job " + v.JobID + " was already registered with this key"
		}
		if v.EvalID != "" {
			what += ", evaluation " + p.ID(v.EvalID)
		}
		p.Printf("%s\n", what)
		if !followed {
			return
		}
		if len(v.Allocations) > 0 {
			p.Title("Allocations")
			apiview.AllocTable(p, r.env, v.Allocations, true)
		}
		if e := v.Evaluation; e != nil && len(e.FailedTGAllocs) > 0 {
			p.Title("Unplaced")
			for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
				apiview.ExplainGroup(p, name, e.QueuedAllocations[name], e.FailedTGAllocs[name])
			}
		}
	}})
}

// unplacedError returns the error of an evaluation that failed or could not place every
// instance, or nil.
func unplacedError(job string, e *client.Evaluation) error {
	switch {
	case e == nil:
		return nil
	case e.Status == "failed":
		return &cmdutil.Error{
			Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("evaluation %s failed: %s", e.ID, e.StatusDescription),
			Hint: "the job is registered; `cede eval explain " + e.ID + "` shows more",
		}
	case e.Status == "cancelled":
		return &cmdutil.Error{
			Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("evaluation %s was cancelled: %s", e.ID, e.StatusDescription),
			Hint: "the job is registered; run it again to create another evaluation",
		}
	case len(e.FailedTGAllocs) == 0 && e.Status != "blocked":
		return nil
	}
	var groups []string
	for _, name := range slices.Sorted(maps.Keys(e.FailedTGAllocs)) {
		text := name
		if n := e.QueuedAllocations[name]; n > 0 {
			text += ": " + cmdutil.Count(n, "instance", "instances")
		}
		groups = append(groups, text)
	}
	return &cmdutil.Error{
		Exit: cmdutil.ExitUnplaced, Code: cmdutil.CodeUnplaced, Details: e.FailedTGAllocs,
		Message: fmt.Sprintf("not every instance of job %s was placed (%s)", job, strings.Join(groups, ", ")),
		Hint:    "the job stays registered and is placed when " + placedWhen(e.FailedTGAllocs) + "; `cede eval explain " + e.ID + "` shows why",
	}
}

// placedWhen returns the event that lets the server place the groups of a job.
func placedWhen(failed map[string]*client.AllocationMetric) string {
	for _, m := range failed {
		if m == nil || len(m.DimensionExhausted) > 0 || len(m.NotReady) > 0 || len(m.ConstraintFiltered) == 0 {
			return "capacity becomes free"
		}
	}
	if len(failed) == 0 {
		return "capacity becomes free"
	}
	return "a node joins that meets its requirements"
}
