package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
)

// configs are what --config gives, by what was written before its =; "" is
// whatever one policy the command is about.
type configs map[string]configFile

type configFile struct {
	name     string
	settings map[string]any
}

// configFlag gives a command --config.
func configFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray("config", nil, "configure the policy by the settings in `FILE`, YAML or JSON; with several policies P=FILE")
}

// readConfigs reads every file, and reports every problem.
func (env *Env) readConfigs(list []string) (configs, error) {
	c := configs{}
	var errs []error
	for _, text := range list {
		p, name := "", text
		if at := strings.LastIndexByte(text, '='); at > 0 {
			p, name = text[:at], text[at+1:]
		}
		settings, err := env.readConfig(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, twice := c[p]; twice {
			errs = append(errs, usagef("put everything into one of them", "--config %s and %s are about the same policy", other.name, name))
		}
		c[p] = configFile{name, settings}
	}
	return c, firstUsage(errs)
}

// firstUsage joins errors into one that has an exit code.
func firstUsage(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	e := &Error{Exit: ExitUsage, Code: codeInvalid, Message: fmt.Sprintf("%d problems", len(errs))}
	for _, err := range errs {
		e.lines = append(e.lines, err.Error())
	}
	e.Details = e.lines
	return e
}

func (env *Env) readConfig(name string) (map[string]any, error) {
	r, err := env.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	settings, err := policies.ReadConfig(name, r)
	if err != nil {
		return nil, &Error{Exit: ExitUsage, Code: codeInvalid, Message: err.Error(), err: err}
	}
	return settings, nil
}

// of is the file for a policy, by any of its names.
func (c configs) of(names ...string) configFile {
	for _, name := range names {
		if f, ok := c[name]; ok {
			return f
		}
	}
	return configFile{}
}

// over are a file's settings over others.
func (f configFile) over(base map[string]any) map[string]any {
	if f.settings == nil {
		return base
	}
	merged := map[string]any{}
	maps.Copy(merged, base)
	maps.Copy(merged, f.settings)
	return merged
}

// blame puts the file's name before an error about one of its settings.
func (f configFile) blame(err error) error {
	if err == nil || f.name == "" {
		return err
	}
	for key := range f.settings {
		if strings.Contains(err.Error(), key+":") {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return err
}

// policyOptions are the flags of a command about policies that it takes as
// arguments.
type policyOptions struct {
	env           *Env
	config, grant *[]string
}

func policyFlags(cmd *cobra.Command, env *Env) *policyOptions {
	return &policyOptions{env: env, config: configFlag(cmd), grant: grantFlag(cmd)}
}

// open loads the policies that were named.
func (o *policyOptions) open(ctx context.Context, names []string) ([]*policies.Policy, error) {
	granted, err := parseGrants(*o.grant)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Sorted(maps.Keys(granted)) {
		if !slices.ContainsFunc(names, func(n string) bool { return n == p || baseName(n) == p }) {
			return nil, usagef("name it as it is written before", "--grant %s=%s: no policy of that name is asked for", p, granted[p][0])
		}
	}
	files, err := o.env.readConfigs(*o.config)
	if err != nil {
		return nil, err
	}
	if err := files.check(names); err != nil {
		return nil, err
	}
	var list []*policies.Policy
	for _, name := range names {
		f := files.of(name, baseName(name), "")
		spec := sim.PolicySpec{Use: name, Config: f.over(nil), Grants: slices.Concat(granted[name], granted[baseName(name)])}
		p, err := o.env.openPolicy(ctx, policies.Request{PolicySpec: spec})
		if err != nil {
			return nil, policyError(name, f.blame(err))
		}
		list = append(list, p)
	}
	return list, nil
}

// check refuses files for policies that are not there.
func (c configs) check(names []string) error {
	for _, p := range slices.Sorted(maps.Keys(c)) {
		switch {
		case p == "" && len(names) != 1:
			return usagef("say for which policy, as in --config P=FILE", "--config %s: there are %d policies", c[p].name, len(names))
		case p != "" && !slices.ContainsFunc(names, func(n string) bool { return n == p || baseName(n) == p }):
			return usagef("name it as it is written elsewhere on the line", "--config %s=%s: no policy of that name is asked for", p, c[p].name)
		}
	}
	return nil
}

// baseName is P of P?key=value.
func baseName(p string) string {
	base, _, _ := strings.Cut(p, "?")
	return cmp.Or(base, p)
}
