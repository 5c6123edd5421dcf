package cli

import (
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

	"github.com/cede-scheduler/cede/cmd/internal/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/sdk/client"
)

// loadFlags are those of `cede policy load`.
type loadFlags struct {
	name, onFault string
	config, grant []string
	activate      bool
	timeout       time.Duration
}

func newPolicyLoadCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "load P",
		Short: "Bring a policy to the servers",
		Long: `Bring policy P to the servers: a .wasm file, a policy's folder, a built-in policy,
or an executable that the servers' operators allow by its checksum. The servers
check it, every one by itself: that it can be run, has hooks, takes its
configuration, answers questions the same each time, and is signed where that is
required. It decides nothing until it is activated. Loading the same again
changes nothing.

It waits until every server that votes has checked the policy, and says for which
it waits and why: one that is down has to be started again, or removed for good. With
--timeout 0 it does not wait. cede policy status N shows every server's check.

A policy with another configuration is another version. Exits 7 when a server
refused the policy.`,
		Example: `  cede policy load thrifty
  cede policy load 'least-waste?bands=20' --name frugal
  cede policy load thrifty.wasm --config settings.yaml --activate`,
		Args: arguments(1, 1, "one policy"),
	}
	out := outputFlags(cmd, env)
	server := serverFlags(cmd, env)
	var f loadFlags
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "call it `N` instead of by its own name")
	flags.StringVar(&f.onFault, "on-fault", "", "deny or default: who decides where it is at fault (default as the scheduler is configured)")
	flags.StringArrayVar(&f.config, "config", nil, "configure it by the settings in `FILE`, YAML or JSON")
	flags.StringArrayVar(&f.grant, "grant", nil, "grant it something: `keepRedundant` lets its lists of victims stand whole")
	flags.BoolVar(&f.activate, "activate", false, "activate it as soon as the servers have checked it")
	flags.DurationVar(&f.timeout, "timeout", checksWithin, "wait no longer than a `DURATION` such as 30s for the servers' checks")
	complete(cmd, "on-fault", []string{policy.Deny.String(), policy.FallBack.String()})
	complete(cmd, "grant", policy.Grants)
	cmd.ValidArgsFunction = policyNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		load, err := env.policyLoad(args[0], f)
		if err != nil {
			return err
		}
		c, err := server.dial()
		if err != nil {
			return err
		}
		v, err := env.loadChecked(cmd.Context(), c, load, f.timeout)
		if err != nil {
			return interruptedBy(cmd.Context(), ofPolicy(err))
		}
		role, err := loadedAs(cmd.Context(), c, v, f.activate)
		if err != nil {
			return ofPolicy(err)
		}
		if err := out.show(loaded(v, role)); err != nil {
			return err
		}
		return refusals(v)
	}
	return cmd
}

// loadedAs is what a version does that was loaded: it may have been there before.
// With activate it is activated, unless a server refused it.
func loadedAs(ctx context.Context, c *client.Client, v *client.PolicyVersion, activate bool) (role string, err error) {
	for _, check := range v.Checks {
		if !check.OK {
			return "", nil
		}
	}
	var st *client.PolicyStatus
	if activate {
		st, err = c.Policies().Activate(ctx, v.Name, v.ID)
	} else {
		st, _, err = c.Policies().Status(ctx, v.Name, nil)
	}
	if err != nil {
		return "", err
	}
	return policyStatus{st}.role(v.ID), nil
}

// loaded is the version that was loaded.
func loaded(v *client.PolicyVersion, role string) document {
	name := versionName(v.Name, v.ID)
	return document{data: v, names: []string{name}, page: func(p page) {
		what := v.Kind
		if v.Size > 0 {
			what += ", " + size(v.Size)
		}
		checked := 0
		for _, c := range v.Checks {
			if c.OK {
				checked++
			}
		}
		p.printf("%s is loaded (%s) and checked by %d of %d servers\n", name, what, checked, max(1, len(v.Checks)+len(uncheckedBy(v))))
		switch {
		case len(v.Awaited) > 0 && checked == len(v.Checks):
			p.printf("It may not decide before all of them have checked it:\n")
			for _, line := range awaitedLines(v) {
				p.printf("  %s\n", line)
			}
		case p.bare || checked < len(v.Checks):
		case role == roleActive:
			p.printf("It is active: it decides for jobs with policy: %s, and for all that name none once the scheduler is set to it.\n", v.Name)
		default:
			p.printf("It decides nothing yet: cede policy shadow %s compares it, cede policy activate %s lets it decide.\n", name, name)
		}
	}}
}

// refusals is the error of a version that servers refused; nil: none did.
func refusals(v *client.PolicyVersion) error {
	e := &Error{Exit: ExitPolicy, Code: codePolicy}
	for _, id := range slices.Sorted(maps.Keys(v.Checks)) {
		if c := v.Checks[id]; !c.OK {
			e.lines = append(e.lines, fmt.Sprintf("server %s: %s", id, c.Error))
		}
	}
	if len(e.lines) == 0 {
		return nil
	}
	e.Message = fmt.Sprintf("%s was refused by %d of %d servers", versionName(v.Name, v.ID), len(e.lines), len(v.Checks))
	e.Hint = "correct it and load it again, or forget it: cede policy unload " + versionName(v.Name, v.ID)
	e.Details = e.lines
	return e
}

// policyLoad makes the request for what was named.
func (env *Env) policyLoad(p string, f loadFlags) (*client.PolicyLoad, error) {
	named, err := builtin.Parse(p)
	if err != nil {
		return nil, usagef("write P or P?key=value", "%v", err)
	}
	if _, err := policy.ParseOnFault(f.onFault); err != nil {
		return nil, usagef("use deny or default", "--on-fault: %v", err)
	}
	files, err := env.readConfigs(f.config)
	if err != nil {
		return nil, err
	}
	if err := files.check([]string{p}); err != nil {
		return nil, err
	}
	load := &client.PolicyLoad{Name: f.name, OnFault: f.onFault}
	if settings := files.of(p, named.Use, "").over(named.Config); len(settings) > 0 {
		if load.Config, err = json.Marshal(settings); err != nil {
			return nil, err
		}
	}
	if load.Grants, err = loadGrants(p, f.grant); err != nil {
		return nil, err
	}
	return load, env.fill(load, named.Use)
}

// loadGrants reads GRANT, and P=GRANT as other commands take it.
func loadGrants(p string, list []string) ([]string, error) {
	var grants []string
	for _, text := range list {
		grant := text
		if at := strings.LastIndexByte(text, '='); at >= 0 {
			if name := text[:at]; name != p && name != baseName(p) {
				return nil, usagef("leave the name out", "--grant %s: %s is not what is loaded", text, name)
			}
			grant = text[at+1:]
		}
		if !slices.Contains(policy.Grants, grant) {
			return nil, usagef("there is "+oneOf(policy.Grants), "--grant %s: there is nothing called %q to grant", text, grant)
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// fill puts into a request what the policy is made of.
func (env *Env) fill(load *client.PolicyLoad, use string) (err error) {
	if slices.Contains(builtin.Names(), use) {
		load.Builtin = use
		return nil
	}
	if use == stdin {
		load.Module, err = env.readModule()
		return err
	}
	b, err := bundle.Open(use)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(use, `/\`) && filepath.Ext(use) == "" {
		return &policies.UnknownError{Policy: use}
	}
	if err != nil {
		return policyError(use, err)
	}
	env.warnStale(b)
	if load.Name == "" && b.Dir == "" {
		load.Name = b.Manifest.Name // of the file, as for other commands
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

// readModule reads a module from standard input.
func (env *Env) readModule() ([]byte, error) {
	r, err := env.open(stdin)
	if err != nil {
		return nil, err
	}
	module, err := io.ReadAll(io.LimitReader(r, policy.MaxModuleSize+1))
	if err != nil {
		return nil, err
	}
	if len(module) > policy.MaxModuleSize {
		return nil, &Error{Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("standard input: a policy may have %s", size(policy.MaxModuleSize))}
	}
	return module, nil
}
