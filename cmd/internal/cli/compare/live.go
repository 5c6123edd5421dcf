package compare

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/core/kube"
)

// A Live compares policies on a scenario that is not a file, such as the state of a
// running cluster.
type Live struct{ c comparison }

// NewLive adds the flags of policies and of the output to a command. fallback describes
// the policies that apply without -p.
func NewLive(cmd *cobra.Command, env *cmdutil.Env, fallback string) *Live {
	l := &Live{comparison{env: env, seeds: 1, live: true, out: cmdutil.OutputFlags(cmd, env)}}
	cmd.Flags().StringArrayVarP(&l.c.policies, "policy", "p", nil, "use policy `P` or P?key=value&key=value; may be repeated (default "+fallback+")")
	l.c.players = simrun.AddPolicyFlags(cmd, env)
	policyflags.CompletePolicyFlag(cmd)
	return l
}

// Resolve checks the flags. The fallback applies without -p.
func (l *Live) Resolve(least int, fallback ...string) error {
	if len(l.c.policies) == 0 {
		l.c.policies = fallback
	}
	expected := "the command expects one or more policies"
	if least > 1 {
		expected = fmt.Sprintf("the command expects %d or more policies", least)
	}
	return cmdutil.JoinProblems("the command line", l.c.out.Resolve(), l.c.check(least, expected))
}

// Policies returns the policies in the order of the command line.
func (l *Live) Policies() []string { return l.c.policies }

// Out returns the output of the command.
func (l *Live) Out() *cmdutil.Output { return l.c.out }

// Compare plays the scenario under every policy and prints the comparison.
func (l *Live) Compare(ctx context.Context, f *simrun.ScenarioFile) error {
	if err := l.c.players.Check(f.File, l.c.policies); err != nil {
		return err
	}
	return l.WithCallLog(func() error { return l.c.play(ctx, []*workload{{ScenarioFile: f, draw: 1}}) })
}

// WhatIfFile prints the evictions that a manifest or job file would cause. The pods of a
// manifest may refer to the pod groups and claims of the cluster.
func (l *Live) WhatIfFile(ctx context.Context, f *simrun.ScenarioFile, name string, cluster *kube.Dump) error {
	w := &whatIf{comparison: &l.c, name: name, file: f, cluster: cluster}
	return l.WithCallLog(func() error {
		answer, err := l.whatIf(ctx, w, w.read)
		if err != nil {
			return err
		}
		return answer.show()
	}, name)
}

// WhatIf returns the evictions that pods would cause. name describes them in messages.
func (l *Live) WhatIf(ctx context.Context, f *simrun.ScenarioFile, name string, pods *kube.Dump) (*Answer, error) {
	w := &whatIf{comparison: &l.c, name: name, file: f}
	read := func() error {
		if err := w.add(pods); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return w.alone()
	}
	return l.whatIf(ctx, w, read)
}

func (l *Live) whatIf(ctx context.Context, w *whatIf, read func() error) (*Answer, error) {
	if err := l.c.players.Check(w.file.File, l.c.policies); err != nil {
		return nil, err
	}
	if err := read(); err != nil {
		return nil, err
	}
	return w.answer(ctx)
}

// WithCallLog runs play. If a log of policy calls was requested, it is written meanwhile. The
// log is neither one of the inputs nor a file of a policy.
func (l *Live) WithCallLog(play func() error, inputs ...string) error {
	if err := l.c.players.CheckOutputs(inputs, nil, l.c.policies); err != nil {
		return err
	}
	return l.c.players.WithCallLog(play)
}

// Page prints the answer as text.
func (a *Answer) Page(p cmdutil.Page) { a.page(p) }

// Conclude prints facts of the workload that a scenario cannot express, and reports faults of
// policies.
func (a *Answer) Conclude() error {
	a.warn()
	return a.w.reportErrors(a.faults)
}

// Only returns a copy with one of the policies.
func (l *Live) Only(i int) *Live {
	one := &Live{l.c}
	one.c.policies = l.c.policies[i : i+1]
	return one
}
