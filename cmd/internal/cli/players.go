package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// players are the policies of a command that plays scenarios, and how the user
// wants them run.
type players struct {
	env *Env
	// flags
	granted, config *[]string
	onFault, log    string

	shown   map[string]string // what policies of the command line are called, by what was written
	grants  grants
	configs configs
	fault   policy.OnFault
	calls   *callLog // nil: nobody is told of calls
}

// playerFlags gives a command the flags that say how policies are run.
func playerFlags(cmd *cobra.Command, env *Env) *players {
	p := &players{env: env, granted: grantFlag(cmd), config: configFlag(cmd)}
	f := cmd.Flags()
	f.StringVar(&p.onFault, "on-fault", policy.Deny.String(), "what an evaluation does whose policy fails: `deny` (evict nobody) or default (ask the built-in policy)")
	f.StringVar(&p.log, "policy-log", "", "write every call of a policy to `FILE`, as JSON lines with what it took; they differ from run to run")
	complete(cmd, "on-fault", onFaults())
	return p
}

func onFaults() []string { return []string{policy.Deny.String(), policy.FallBack.String()} }

// resolve reads the flags. played are the policies that the command line names;
// none: what the files say.
func (p *players) resolve(played []string) (err error) {
	switch p.onFault {
	case policy.Deny.String():
		p.fault = policy.Deny
	case policy.FallBack.String():
		p.fault = policy.FallBack
	default:
		return usagef("use "+oneOf(onFaults()), "--on-fault %s: there is no such thing to do", p.onFault)
	}
	p.shown = shownNames(played)
	if p.grants, err = parseGrants(*p.granted); err != nil {
		return err
	}
	if p.configs, err = p.env.readConfigs(*p.config); err != nil {
		return err
	}
	if f, ok := p.configs[""]; ok {
		if len(played) != 1 {
			return usagef("say for which policy, as in --config P=FILE", "--config %s: the command names %d policies", f.name, len(played))
		}
		delete(p.configs, "")
		p.configs[played[0]] = f
	}
	return nil
}

// check refuses grants and settings for policies that have no part in a file.
func (p *players) check(f *scenario.File, played []string) error {
	if err := p.grants.check(f, played); err != nil {
		return err
	}
	names := partsIn(f, played)
	for name, file := range p.configs {
		if !slices.Contains(names, name) {
			return usagef("name it as it is written after -p, or as the scenario does", "--config %s=%s: %s plays no policy of that name", name, file.name, f.Name)
		}
	}
	return nil
}

// resolver makes versions for one file. A relative path starts from where it is
// written: on the command line from the working folder, in a file from the
// file's. played is the policy that replaces what the file says; empty: none does.
func (p *players) resolver(f *scenario.File, file, played string) func(sim.PolicySpec) (*policy.Version, error) {
	return func(spec sim.PolicySpec) (*policy.Version, error) {
		r := policies.Request{PolicySpec: spec, OnFault: p.fault, Observe: p.calls.observer()}
		variant := slices.ContainsFunc(f.Policies, func(v scenario.PolicyVariant) bool { return v.Name == spec.Name })
		if played == "" || variant {
			r.Dir = filepath.Dir(file)
		}
		r.Grants = p.grants.to(spec)
		settings := p.configs.of(spec.Name, spec.Use, baseName(spec.Use))
		r.Config = settings.over(spec.Config)
		if spec.Name == played && !variant {
			r.Name = p.shown[played]
		}
		opened, err := p.env.openPolicy(context.Background(), r)
		if err != nil {
			return nil, settings.blame(err)
		}
		return opened.Version, nil
	}
}

// start opens the log of calls; stop closes it and says what became of it.
func (p *players) start() (stop func() error, err error) {
	if p.log == "" {
		return func() error { return nil }, nil
	}
	if p.calls, err = newCallLog(p.env, p.log); err != nil {
		return nil, err
	}
	return p.calls.close, nil
}

// logged plays with a log of the policies' calls, where one is asked for.
func (p *players) logged(play func() error) error {
	stop, err := p.start()
	if err != nil {
		return err
	}
	return errors.Join(play(), stop())
}

// partsIn lists the names of every policy that has a part in a file when it is
// played under the given policies; none means as the file says.
func partsIn(f *scenario.File, played []string) []string {
	names := slices.Clone(played)
	if len(played) == 0 {
		names = append(names, policy.DefaultName, f.Scheduler.Policy)
		for i := range f.Jobs {
			names = append(names, f.Jobs[i].Policy)
		}
	}
	for _, v := range f.Policies {
		if slices.Contains(names, v.Name) {
			names = append(names, v.Use)
		}
	}
	for _, n := range names {
		base, _, _ := strings.Cut(n, "?")
		names = append(names, base)
	}
	return names
}
