package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition/build"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/sdk/client"
)

// loadFlags holds the flags of cede policy load.
type loadFlags struct {
	name, onFault string
	expressions   []string
	config, grant []string
	activate      bool
	timeout       time.Duration
}

func newPolicyLoadCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "load [P]",
		Short:       "Load a policy into the servers",
		Annotations: cmdutil.ExitCodes("7 a server refused the policy"),
		Long: `Load policy P into the servers: a .wasm file, the folder of a policy, a built-in policy,
or an executable whose checksum the configuration of the servers permits. Each server
checks the policy itself: that it runs, has hooks, accepts its configuration, returns
the same result each time, and is signed if signatures are required. The same policy
with another configuration is another version. Loading the same version again changes
nothing.

The command waits until every voting server has checked the policy, and reports which
checks are missing and why: a server that is down must be started again or removed.
With --timeout 0 it does not wait. cede policy status N shows the check of each server.

-e loads rules in place of P, such as 'order: victim.priority'. This command compiles
them to a module; docs/reference/rules.md describes the language. -e also loads a
composition of other policies, such as 'use: eligible: protect; order: least-waste';
pool://N@V is a part that the servers have loaded (docs/guides/compose-policies.md).

A loaded policy decides nothing until it is activated. A version that is activated under
the name of a built-in policy, such as default, decides in its place. The built-in policy
is not reached by a rollback at first: cede policy load default --activate returns to it.`,
		Example: `  cede policy load thrifty
  cede policy load 'least-waste?bands=20' --name frugal
  cede policy load thrifty.wasm --config settings.yaml --activate
  cede policy load -e 'order: victim.lostWork' --name gentle
  cede policy load -e 'use: eligible: protect; order: least-waste' --name steady`,
		Args: cmdutil.PositionalArgs(0, 1, "one policy"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	server := cmdutil.ConnectionFlags(cmd, env)
	var f loadFlags
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "load it under the name `N` (default: its own name)")
	flags.StringArrayVarP(&f.expressions, "expression", "e", nil, "load the rule `RULE`, such as 'order: victim.age', or a composition; may be repeated")
	flags.StringVar(&f.onFault, "on-fault", "", "if the policy fails, `deny or default`: deny preemption, or use the policy default (default: the setting of the scheduler)")
	flags.StringArrayVar(&f.config, "config", nil, "configure it by the settings in `FILE`, YAML or JSON")
	flags.StringArrayVar(&f.grant, "grant", nil, "grant a privilege: `keepRedundant` evicts all victims that the policy selects")
	flags.BoolVar(&f.activate, "activate", false, "activate it as soon as the servers have checked it")
	flags.DurationVar(&f.timeout, "timeout", checksWithin, "wait at most a `DURATION` such as 30s for the checks of the servers")
	cmdutil.CompleteFlag(cmd, "on-fault", []string{policy.Deny.String(), policy.FallBack.String()})
	cmdutil.CompleteFlag(cmd, "grant", policy.Grants)
	cmd.ValidArgsFunction = policyflags.CompleteNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if f.timeout < 0 {
			return cmdutil.Usagef("use a duration such as 30s, or 0 to wait for no check", "--timeout must not be negative: %v", f.timeout)
		}
		p, err := f.policy(args)
		if err != nil {
			return err
		}
		load, err := newPolicyLoad(cmd.Context(), env, p, f, poolBuilder(server))
		if err != nil {
			return err
		}
		c, err := server.Dial()
		if err != nil {
			return err
		}
		v, names, err := loadChecked(cmd.Context(), env, c, load, f.timeout)
		if err != nil {
			return cmdutil.InterruptError(cmd.Context(), ofPolicy(err))
		}
		st, err := loadedAs(cmd.Context(), c, v, f.activate)
		if err != nil {
			return ofPolicy(err)
		}
		if err := out.Show(loaded(v, st, names)); err != nil {
			return err
		}
		return refusals(v, names)
	}
	return cmd
}

// policy returns the policy to load: the argument, or the rules or the composition of -e.
func (f *loadFlags) policy(args []string) (string, error) {
	switch {
	case len(args) == 1 && len(f.expressions) == 0:
		return args[0], nil
	case len(args) == 0 && len(f.expressions) == 1 && strings.HasPrefix(f.expressions[0], bundle.UsePrefix):
		return f.expressions[0], nil
	case len(args) == 0 && len(f.expressions) > 0:
		var list []string
		for _, e := range f.expressions { // as in the place of a policy, or without the prefix
			list = append(list, strings.TrimSpace(strings.TrimPrefix(e, rules.Prefix)))
		}
		return rules.Prefix + strings.Join(list, "\n"), nil
	}
	return "", cmdutil.Usagef("cede policy load P, or cede policy load -e 'order: victim.age'", "exactly one of P and -e is required")
}

// loadedAs returns the status of the policy of a loaded version, which may have existed
// before. With activate the version is activated. If a server refused it, the status is empty.
func loadedAs(ctx context.Context, c *client.Client, v *client.PolicyVersion, activate bool) (*client.PolicyStatus, error) {
	for _, check := range v.Checks {
		if !check.OK {
			return &client.PolicyStatus{}, nil
		}
	}
	if activate {
		return c.Policies().Activate(ctx, v.Name, v.ID)
	}
	st, _, err := c.Policies().Status(ctx, v.Name, nil)
	return st, err
}

// loaded returns the document of a loaded version.
func loaded(v *client.PolicyVersion, st *client.PolicyStatus, names cmdutil.ServerNames) cmdutil.Document {
	name := policyflags.VersionName(v.Name, v.ID)
	return cmdutil.Document{Data: v, Names: []string{name}, Page: func(p cmdutil.Page) {
		what := v.Kind
		if v.Size > 0 {
			what += ", " + cmdutil.FormatBytes(v.Size)
		}
		checked := 0
		for _, c := range v.Checks {
			if c.OK {
				checked++
			}
		}
		p.Printf("%s is loaded (%s) and checked by %d of %s\n", name, what, checked, cmdutil.Count(max(1, len(v.Checks)+len(uncheckedBy(v))), "server", "servers"))
		switch {
		case len(v.Awaited) > 0 && checked == len(v.Checks):
			p.Printf("It cannot be activated until these servers have checked it:\n")
			for _, line := range awaitedLines(v, names) {
				p.Printf("  %s\n", line)
			}
		case p.NoHeaders || checked < len(v.Checks):
		case policyStatus{PolicyStatus: st}.role(v.ID) == roleActive:
			p.Printf("It is active for jobs with policy: %s, and for jobs without a policy if the scheduler settings select it.\n", v.Name)
			if instead := inPlaceOfBuiltin(st); instead != "" {
				p.Printf("It decides%s.\n", instead)
			}
		default:
			p.Printf("It is not active: cede policy shadow %s compares it, cede policy activate %s activates it.\n", name, name)
		}
	}}
}

// refusals returns an error that lists the servers that refused a version, or nil.
func refusals(v *client.PolicyVersion, names cmdutil.ServerNames) error {
	e := &cmdutil.Error{Exit: cmdutil.ExitPolicy, Code: cmdutil.CodePolicy}
	for _, id := range slices.Sorted(maps.Keys(v.Checks)) {
		if c := v.Checks[id]; !c.OK {
			e.Lines = append(e.Lines, fmt.Sprintf("server %s: %s", names.Full(id), c.Error))
		}
	}
	if len(e.Lines) == 0 {
		return nil
	}
	e.Message = fmt.Sprintf("%s was refused by %d of %s", policyflags.VersionName(v.Name, v.ID), len(e.Lines), cmdutil.Count(len(v.Checks), "server", "servers"))
	e.Hint = "correct and reload the policy, or unload it: cede policy unload " + policyflags.VersionName(v.Name, v.ID)
	e.Details = e.Lines
	return e
}

// newPolicyLoad creates the load request for a policy.
func newPolicyLoad(ctx context.Context, env *cmdutil.Env, p string, f loadFlags, builder *build.Builder) (*client.PolicyLoad, error) {
	named := builtin.Spec{Use: p}
	var problems []error
	report := func(err error) { problems = append(problems, err) }
	if policies.InlineName(p) == "" {
		var err error
		if named, err = builtin.Parse(p); err != nil {
			report(cmdutil.Usagef("use P or P?key=value", "%v", err))
		}
	}
	if _, err := policy.ParseOnFault(f.onFault); err != nil {
		report(cmdutil.Usagef("use deny or default", "invalid --on-fault %q", f.onFault))
	}
	load := &client.PolicyLoad{Name: f.name, OnFault: f.onFault}
	files, err := policyflags.ReadConfigs(env, f.config)
	if err == nil {
		err = files.Check([]string{p})
	}
	report(err)
	if settings := files.For(p, named.Use, "").MergeInto(named.Config); err == nil && len(settings) > 0 {
		load.Config, err = json.Marshal(settings)
		report(err)
	}
	load.Grants, err = loadGrants(p, f.grant)
	report(err)
	if named.Use != "" {
		report(fillPolicyLoad(ctx, env, load, named.Use, builder))
	}
	return load, cmdutil.JoinProblems("the command line", problems...)
}

// loadGrants parses GRANT, and P=GRANT as other commands accept it.
func loadGrants(p string, list []string) ([]string, error) {
	var grants []string
	for _, text := range list {
		grant := text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			if name := text[:at]; name != p && name != policyflags.BaseName(p) {
				return nil, cmdutil.Usagef("remove the name", "invalid --grant %s: the policy to load is not %s", text, name)
			}
			grant = text[at+1:]
		}
		if !slices.Contains(policy.Grants, grant) {
			return nil, cmdutil.Usagef("use "+cmdutil.JoinOr(policy.Grants), "--grant %s: unknown grant %q", text, grant)
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// fillPolicyLoad adds the module, manifest and signature of a policy to a request.
func fillPolicyLoad(ctx context.Context, env *cmdutil.Env, load *client.PolicyLoad, use string, builder *build.Builder) (err error) {
	if _, _, ok := builtin.Module(use); ok {
		load.Builtin = use
		return nil
	}
	if policies.InlineName(use) != "" {
		return fillInlineLoad(ctx, load, use, builder)
	}
	if use == cmdutil.Stdin {
		load.Module, err = readModule(env)
		return err
	}
	b, err := bundle.Open(use)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(use, `/\`) && filepath.Ext(use) == "" {
		return &policies.UnknownError{Policy: use}
	}
	if err != nil {
		return policyflags.WrapError(use, err)
	}
	policyflags.WarnStale(env, b)
	if load.Name == "" && b.Dir == "" {
		load.Name = b.Manifest.Name // the name in the file, as for other commands
	}
	if load.Manifest, load.Signature, err = b.Contents(); err != nil {
		return err
	}
	if b.Manifest.Kind == bundle.Process {
		load.Executable = b.Manifest.Digest // the servers have their own copy
	} else {
		load.Module = b.Code
	}
	return nil
}

// fillInlineLoad adds the module and the manifest of rules or a composition to a request.
func fillInlineLoad(ctx context.Context, load *client.PolicyLoad, text string, builder *build.Builder) error {
	load.Name = cmp.Or(load.Name, policies.InlineName(text))
	if err := bundle.CheckName(load.Name); err != nil {
		return cmdutil.Usagef("use a name such as gentle", "%v", err)
	}
	b, err := policies.BundleInline(ctx, builder, load.Name, "", text)
	if err != nil {
		return policyflags.WrapError(text, errors.Join(err, usableProblems(ctx, builder, text)))
	}
	load.Module = b.Code
	load.Manifest, _, err = b.Contents()
	return err
}

// usableProblems returns the problems of those parts of a composition that can be used, which the
// servers would report after the others are corrected. It returns none if a part is loaded in
// the servers, since its executable need not exist here, or is an executable: none is started.
func usableProblems(ctx context.Context, builder *build.Builder, text string) error {
	if strings.Contains(text, build.PoolPrefix) {
		return nil
	}
	l := policies.New(policies.Options{})
	err := l.CheckUsableInline(policies.WithoutProcesses(ctx), builder, policies.Request{PolicySpec: sim.PolicySpec{Use: text}})
	if errors.Is(err, policies.ErrNotStarted) {
		err = nil
	}
	return errors.Join(err, l.Close())
}

// readModule reads a module from standard input.
func readModule(env *cmdutil.Env) ([]byte, error) {
	r, err := env.Open(cmdutil.Stdin)
	if err != nil {
		return nil, err
	}
	module, err := io.ReadAll(io.LimitReader(r, policy.MaxModuleSize+1))
	if err != nil {
		return nil, err
	}
	if len(module) > policy.MaxModuleSize {
		return nil, &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: fmt.Sprintf("standard input is larger than the limit of a policy, %s", cmdutil.FormatBytes(policy.MaxModuleSize))}
	}
	return module, nil
}
