package policyflags

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/sim"
)

// Configs holds the files of --config by the name before the =; "" applies to the only
// policy of the command.
type Configs map[string]ConfigFile

// ConfigFile is a file of settings for one policy.
type ConfigFile struct {
	Path     string
	Settings map[string]any
}

// ConfigFlag adds --config to a command.
func ConfigFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray("config", nil, "configure the policy by the settings in `FILE`, YAML or JSON; with several policies P=FILE")
}

// ReadConfigs reads every file, and returns all problems.
func ReadConfigs(env *cmdutil.Env, list []string) (Configs, error) {
	c := Configs{}
	var errs []error
	for _, text := range list {
		p, name := "", text
		if at := strings.LastIndexByte(text, '='); at > 0 {
			p, name = text[:at], text[at+1:]
		}
		settings, err := readConfig(env, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if other, duplicate := c[p]; duplicate {
			errs = append(errs, cmdutil.Usagef("combine the settings in one file", "--config %s and %s apply to the same policy", other.Path, name))
		}
		c[p] = ConfigFile{name, settings}
	}
	return c, cmdutil.JoinProblems("--config", errs...)
}

func readConfig(env *cmdutil.Env, name string) (map[string]any, error) {
	r, err := env.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // read-only
	settings, err := policies.ReadConfig(name, r)
	if err != nil {
		return nil, &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: err.Error(), Err: err}
	}
	return settings, nil
}

// For returns the file for a policy, by any of its names.
func (c Configs) For(names ...string) ConfigFile {
	for _, name := range names {
		if f, ok := c[name]; ok {
			return f
		}
	}
	return ConfigFile{}
}

// MergeInto returns base with the settings of the file applied.
func (f ConfigFile) MergeInto(base map[string]any) map[string]any {
	if f.Settings == nil {
		return base
	}
	merged := map[string]any{}
	maps.Copy(merged, base)
	maps.Copy(merged, f.Settings)
	return merged
}

// WrapError adds the name of the file to an error about one of its settings.
func (f ConfigFile) WrapError(err error) error {
	if err == nil || f.Path == "" {
		return err
	}
	for key := range f.Settings {
		if strings.Contains(err.Error(), key+":") {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return err
}

// Flags are the flags of a command whose arguments are policies.
type Flags struct {
	env           *cmdutil.Env
	config, grant *[]string
}

// AddFlags adds --config and --grant to a command.
func AddFlags(cmd *cobra.Command, env *cmdutil.Env) *Flags {
	return &Flags{env: env, config: ConfigFlag(cmd), grant: GrantFlag(cmd)}
}

// Open loads the named policies.
func (o *Flags) Open(ctx context.Context, names []string) ([]*policies.Policy, error) {
	granted, err := ParseGrants(*o.grant)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Sorted(maps.Keys(granted)) {
		if !slices.ContainsFunc(names, func(n string) bool { return n == p || BaseName(n) == p }) {
			return nil, cmdutil.Usagef("use the name of a policy argument", "unknown policy in --grant %s=%s", p, granted[p][0])
		}
	}
	files, err := ReadConfigs(o.env, *o.config)
	if err != nil {
		return nil, err
	}
	if err := files.Check(names); err != nil {
		return nil, err
	}
	var list []*policies.Policy
	for _, name := range names {
		f := files.For(name, BaseName(name), "")
		spec := sim.PolicySpec{Use: name, Config: f.MergeInto(nil), Grants: slices.Concat(granted[name], granted[BaseName(name)])}
		p, err := OpenPolicy(ctx, o.env, policies.Request{PolicySpec: spec})
		if err != nil {
			return nil, WrapError(name, f.WrapError(err))
		}
		list = append(list, p)
	}
	return list, nil
}

// Check returns an error if a file is given for a policy that is not used.
func (c Configs) Check(names []string) error {
	for _, p := range slices.Sorted(maps.Keys(c)) {
		switch {
		case p == "" && len(names) != 1:
			return cmdutil.Usagef("name the policy: --config P=FILE", "ambiguous --config %s: there are %d policies", c[p].Path, len(names))
		case p != "" && !slices.ContainsFunc(names, func(n string) bool { return n == p || BaseName(n) == p }):
			return cmdutil.Usagef("use the name of a policy argument", "unknown policy in --config %s=%s", p, c[p].Path)
		}
	}
	return nil
}

// BaseName returns P of P?key=value. Rules have no settings.
func BaseName(p string) string {
	if policies.InlineName(p) != "" {
		return p
	}
	base, _, _ := strings.Cut(p, "?")
	return cmp.Or(base, p)
}
