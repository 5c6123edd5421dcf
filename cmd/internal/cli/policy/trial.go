package policy

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// defaultStopIf is the condition that ends a trial unless another one is given.
const defaultStopIf = "worse(victims, candidate, active) || worse('wastedWork.cpu', candidate, active) || worse('queueDelay.mean', candidate, active)"

func newPolicyTrialCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trial N@V",
		Short: "Compare a version with the active one, block by block",
		Long: `Compare version V, the candidate, with the active version of policy N. Both decide in
alternate blocks of time. Blocks form pairs, and the order within each pair is random.
The start of each block is not measured: it shows the effects of the version before.

The trial ends as soon as a condition holds: --stop-if leaves the active version in
force, --promote-if activates the candidate. If both hold, --stop-if prevails. Without
a verdict, the active version stays when the time has passed. Conditions are evaluated
after every pair of blocks. With equal versions, the probability that the trial ever
finds one worse or better is at most 5 %, however often that is. No verdict is possible
before eight pairs of blocks are complete, or nine if the conditions read three metrics.
If --for contains fewer, a warning is printed.

A condition has the form of cede help fail-if. The policies are active and candidate;
the metrics are victims, wastedWork.cpu, wastedWork.memory, budgetViolations,
queueDelay.mean and placed, per block. low and high are the ends of the interval of the
trial. Each metric that the conditions read makes the intervals a little wider.

cede policy status N shows the measures. cede policy rollback N ends the trial.`,
		Example: `  cede policy trial thrifty@4f2a --for 72h --block 30m
  cede policy trial thrifty@4f2a --for 72h --promote-if "better('wastedWork.cpu', candidate, active)"`,
		Args: cmdutil.PositionalArgs(1, 1, "one version of a policy, N@V"),
	}
	var r client.PolicyTrialRequest
	f := cmd.Flags()
	f.DurationVar(&r.For, "for", 72*time.Hour, "end the trial after `DURATION`")
	f.DurationVar(&r.Block, "block", 30*time.Minute, "let a version decide for `DURATION` at a time")
	f.DurationVar(&r.Washout, "washout", 0, "do not measure the first `DURATION` of a block (default: a sixth)")
	f.StringVar(&r.StopIf, "stop-if", defaultStopIf, "keep the active version as soon as `CONDITION` holds")
	f.StringVar(&r.PromoteIf, "promote-if", "", "activate the candidate as soon as `CONDITION` holds")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		name, version, err := namedVersion(cmd, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		r.Version = version
		st, err := c.Client.Policies().Trial(ctx, name, &r)
		if err != nil {
			return cmdutil.Document{}, ofPolicy(err)
		}
		t := st.Trial
		if t.Warning != "" {
			env.Warn(t.Warning + "; lengthen --for or shorten --block, and start it again")
		}
		return changed(st, t.Candidate, fmt.Sprintf("%s and %s alternate in blocks of %v until %s; cede policy status %s shows the measures",
			policyflags.VersionName(st.Name, t.Candidate), model.ShortVersion(t.Baseline), t.Block, when(t.Until), st.Name)), nil
	})
}

// trial prints the trial with blocks.
func (s policyStatus) trial(p cmdutil.Page) {
	c := s.Trial
	if c == nil {
		return
	}
	p.Title(fmt.Sprintf("Trial of %s against %s", model.ShortVersion(c.Candidate), model.ShortVersion(c.Baseline)))
	if !p.NoHeaders {
		state := "until " + when(c.Until)
		if c.End != nil {
			state = c.End.Ended + " " + when(c.End.Time)
		}
		p.Printf("  %s in blocks of %v, %s\n", cmdutil.Count(c.Blocks/2, "pair", "pairs"), c.Block, state)
		s.conditions(p)
		if c.Warning != "" && c.End == nil {
			p.Printf("  %s\n", c.Warning)
		}
	}
	t := &term.Table{Columns: []term.Column{
		{Title: "PER BLOCK"}, {Title: "ACTIVE", Right: true}, {Title: "CANDIDATE", Right: true}, {Title: "DIFFERENCE", Right: true}, {Title: "INTERVAL"},
	}}
	for _, m := range c.Measures {
		interval := "too few blocks"
		if m.Low != nil && m.High != nil {
			interval = fmt.Sprintf("%+.4g to %+.4g", *m.Low, *m.High)
		}
		t.Row(m.Name, fmt.Sprintf("%.4g", m.Baseline), fmt.Sprintf("%.4g", m.Candidate), fmt.Sprintf("%+.4g", m.Difference), interval)
	}
	p.Table(t)
}

// conditions prints the conditions of the trial, or the one that held.
func (s policyStatus) conditions(p cmdutil.Page) {
	if end := s.Trial.End; end != nil {
		if end.Reason != "" {
			p.Printf("  because %s\n", end.Reason)
		}
		return
	}
	for _, c := range [][2]string{{"stops if", s.Trial.StopIf}, {"promotes if", s.Trial.PromoteIf}} {
		if c[1] != "" {
			p.Printf("  %s %s\n", c[0], c[1])
		}
	}
}
