package simrun

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// PolicyFlags holds the policies of a command that plays scenarios, and the settings
// with which they run.
type PolicyFlags struct {
	env *cmdutil.Env
	// flags
	grantFlags, configFlags *[]string
	faultFlag, callLogFile  string

	DisplayNames map[string]string // display names of the command line's policies, by argument
	grants       policyflags.Grants
	configs      policyflags.Configs
	unread       bool // a file of --config cannot be read
	OnFault      policy.OnFault
	callLog      *callLog                                      // nil if calls are not logged
	fixed        func(sim.PolicySpec) (*policy.Version, error) // nil: policies are opened by the flags
}

// FixedPolicies returns policies without flags, which resolve opens.
func FixedPolicies(env *cmdutil.Env, names []string, resolve func(sim.PolicySpec) (*policy.Version, error)) *PolicyFlags {
	display := map[string]string{}
	for _, name := range names {
		display[name] = name
	}
	return &PolicyFlags{env: env, DisplayNames: display, OnFault: policy.Deny, fixed: resolve}
}

// AddPolicyFlags adds the flags that configure how policies run.
func AddPolicyFlags(cmd *cobra.Command, env *cmdutil.Env) *PolicyFlags {
	p := &PolicyFlags{env: env, grantFlags: policyflags.GrantFlag(cmd), configFlags: policyflags.ConfigFlag(cmd)}
	f := cmd.Flags()
	f.StringVar(&p.faultFlag, "on-fault", policy.Deny.String(), "if a policy fails, `deny` preemption for the evaluation, or use the policy default")
	f.StringVar(&p.callLogFile, "policy-log", "", "write every policy call and its duration to `FILE` as JSON lines; durations differ between runs")
	cmdutil.CompleteFlag(cmd, "on-fault", onFaults())
	return p
}

func onFaults() []string { return []string{policy.Deny.String(), policy.FallBack.String()} }

// Resolve reads the flags, and returns all of their problems. The argument played lists the
// policies of the command line; if it is empty, those of the files are used.
func (p *PolicyFlags) Resolve(played []string) error {
	var problems []error
	add := func(err error) { problems = append(problems, err) }
	switch p.faultFlag {
	case policy.Deny.String():
		p.OnFault = policy.Deny
	case policy.FallBack.String():
		p.OnFault = policy.FallBack
	default:
		add(cmdutil.Usagef("use "+cmdutil.JoinOr(onFaults()), "invalid --on-fault %q", p.faultFlag))
	}
	for _, name := range played {
		add(policyflags.WrapError(name, policies.CheckInline(name)))
	}
	p.DisplayNames = policyflags.DisplayNames(played)
	var err error
	p.grants, err = policyflags.ParseGrants(*p.grantFlags)
	add(err)
	p.configs, err = policyflags.ReadConfigs(p.env, *p.configFlags)
	p.unread = err != nil
	add(err)
	if f, ok := p.configs[""]; ok {
		if len(played) == 1 {
			p.configs[played[0]] = f
		} else {
			add(cmdutil.Usagef("name the policy: --config P=FILE", "ambiguous --config %s: the command line names %d policies", f.Path, len(played)))
		}
		delete(p.configs, "")
	}
	return cmdutil.JoinProblems("the command line", problems...)
}

// Settings returns the settings of the command line with which policies run.
func (p *PolicyFlags) Settings() []string {
	settings := []string{"--on-fault=" + p.OnFault.String()}
	for _, g := range *p.grantFlags {
		settings = append(settings, "--grant="+g)
	}
	for _, c := range *p.configFlags {
		settings = append(settings, "--config="+c)
	}
	return settings
}

// Check returns an error if grants or settings name a policy that the file does not
// use.
func (p *PolicyFlags) Check(f *scenario.File, played []string) error {
	if err := p.grants.Check(f, played); err != nil {
		return err
	}
	names := policyflags.ReferencedPolicies(f, played)
	for name, file := range p.configs {
		if !slices.Contains(names, name) {
			return cmdutil.Usagef("use the name after -p, or the name in the scenario", "unknown policy in --config %s=%s: %s does not use it", name, file.Path, f.Name)
		}
	}
	return nil
}

// Resolver returns a function that resolves policies for one file. A relative path on
// the command line starts from the working directory, in a file from the directory of
// the file. If played is not empty, it replaces the policy of the file.
func (p *PolicyFlags) Resolver(f *scenario.File, file, played string) func(sim.PolicySpec) (*policy.Version, error) {
	if p.fixed != nil {
		return p.fixed
	}
	return func(spec sim.PolicySpec) (*policy.Version, error) {
		r := policies.Request{PolicySpec: spec, OnFault: p.OnFault, Observe: p.callLog.observer()}
		variant := slices.ContainsFunc(f.Policies, func(v scenario.PolicyVariant) bool { return v.Name == spec.Name })
		if played == "" || variant {
			r.Dir = filepath.Dir(file)
		}
		r.Grants = p.grants.For(spec)
		settings := p.configs.For(spec.Name, spec.Use, policyflags.BaseName(spec.Use))
		r.Config = settings.MergeInto(spec.Config)
		if spec.Name == played && !variant {
			r.Name = p.DisplayNames[played]
		}
		opened, err := policyflags.OpenPolicy(context.Background(), p.env, r)
		if err != nil {
			return nil, settings.WrapError(err)
		}
		return opened.Version, nil
	}
}

// openCallLog opens the log of calls; stop closes it and returns its first error.
func (p *PolicyFlags) openCallLog() (stop func() error, err error) {
	if p.callLogFile == "" {
		return func() error { return nil }, nil
	}
	if p.callLog, err = newCallLog(p.env, p.callLogFile); err != nil {
		return nil, err
	}
	return p.callLog.close, nil
}

// CheckOutputs returns an error if a file that the command writes, or the log of policy calls,
// cannot be written or is an input: one of the given ones, or a file of the policies and
// settings of the command line or of the scenarios.
func (p *PolicyFlags) CheckOutputs(inputs []string, scenarios []*ScenarioFile, played []string, outputs ...cmdutil.OutputFile) error {
	inputs = slices.Clone(inputs)
	for _, name := range played {
		inputs = append(inputs, policyflags.Files("", name)...)
	}
	for _, c := range *p.configFlags {
		inputs = append(inputs, c, c[strings.LastIndexByte(c, '=')+1:])
	}
	for _, f := range scenarios {
		for _, name := range usedPolicies(f.File) {
			inputs = append(inputs, policyflags.Files(filepath.Dir(f.Path), name)...)
		}
	}
	return p.env.CheckOutputs(inputs, append(outputs, cmdutil.OutputFile{Flag: "--policy-log", Name: p.callLogFile})...)
}

// JoinProblems returns an error with all problems of a command, or nil if there are none. If
// there are some, it adds the policies that cannot be opened: otherwise the run reports them.
func (p *PolicyFlags) JoinProblems(problems []error, scenarios []*ScenarioFile, played []string) error {
	err := cmdutil.JoinProblems("the command line", problems...)
	if err == nil || p.unread { // a policy may require the settings of a file that cannot be read
		return err
	}
	for _, f := range scenarios {
		for _, name := range played {
			if name != "" && policies.CheckInline(name) == nil { // otherwise Resolve has reported it
				problems = append(problems, p.openable(f, name))
			}
		}
	}
	return cmdutil.JoinProblems("the command line", problems...)
}

// openable returns an error if a policy cannot be opened for a scenario.
func (p *PolicyFlags) openable(f *ScenarioFile, name string) error {
	v, err := p.Resolver(f.File, f.Path, name)(sim.SpecOf(f.Policies, name))
	if err != nil {
		return RunError(f, &sim.PolicyError{Policy: name, Err: err}, true)
	}
	v.AddRef()
	v.ReleaseRef() // ends the process of a policy that has one
	return nil
}

// usedPolicies returns the policies that a scenario names, each once.
func usedPolicies(f *scenario.File) []string {
	names := []string{f.Scheduler.Policy}
	for i := range f.Policies {
		names = append(names, f.Policies[i].Use)
	}
	for i := range f.Jobs {
		names = append(names, f.Jobs[i].Policy)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// WithCallLog runs play. If a log of policy calls was requested, it is written meanwhile. The
// caller has checked the files of the command with CheckOutputs.
func (p *PolicyFlags) WithCallLog(play func() error) error {
	stop, err := p.openCallLog()
	if err != nil {
		return err
	}
	return errors.Join(play(), stop())
}

// EmptyPolicyName returns the error for an empty -p, which must not select the
// default.
func EmptyPolicyName(hint string) error { return cmdutil.Usagef(hint, "-p must not be empty") }
