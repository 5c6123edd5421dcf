package sim

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A policyLoader creates the versions of a run's policies.
type policyLoader struct {
	file *scenario.Resolved
	opts *Options
}

// loadPolicies creates the versions that the run needs: the built-in default, the
// scenario's policy, those of jobs, and the one that replaces them all.
func (e *engine) loadPolicies() error {
	if e.opts.Resolve == nil {
		return errors.New("a resolver of policies is required")
	}
	var names []string
	if e.opts.Policy == "" {
		names = append(names, e.file.Config.Policy)
		for _, j := range e.file.Jobs {
			names = append(names, j.Policy)
		}
		names = append(names, policy.DefaultName)
	} else {
		names = append(names, e.opts.Policy)
	}
	loader := policyLoader{e.file, &e.opts}
	byName := map[string]*policy.Version{}
	var versions []*policy.Version
	var errs []error
	for _, name := range names {
		if _, tried := byName[name]; name == "" || tried {
			continue
		}
		v, err := loader.load(name)
		byName[name] = v
		if err != nil {
			errs = append(errs, &PolicyError{Policy: name, Err: err})
			continue
		}
		versions = append(versions, v)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	fallback, err := loader.fallback(byName[policy.DefaultName])
	if err != nil {
		return err
	}
	set, err := policy.NewSetWithFallback(fallback, versions...)
	if err != nil {
		return err
	}
	e.policies, e.version = set, byName[e.policyName()]
	if e.opts.Policy != "" {
		e.policies = set.Override(e.version)
		set.Unpin()
	}
	return nil
}

// fallback is the built-in default, which implements the hooks that policies lack. A
// variant of the file may have the same name; it decides for jobs that name it.
func (l *policyLoader) fallback(named *policy.Version) (*policy.Version, error) {
	variant := slices.ContainsFunc(l.file.Policies, func(p scenario.PolicyVariant) bool { return p.Name == policy.DefaultName })
	if named != nil && !variant {
		return named, nil
	}
	v, err := l.opts.Resolve(PolicySpec{Name: policy.DefaultName, Use: policy.DefaultName})
	if err != nil {
		return nil, &PolicyError{Policy: policy.DefaultName, Err: err}
	}
	return v, nil
}

// PolicyError is returned if a policy cannot be loaded.
type PolicyError struct {
	Policy string // name in the file or in the options
	Err    error
}

func (e *PolicyError) Error() string {
	prefix, text := "policy "+e.Policy+": ", e.Err.Error()
	return prefix + strings.TrimPrefix(text, prefix) // the text of a version's error already begins with its name
}

// Unwrap returns the cause.
func (e *PolicyError) Unwrap() error { return e.Err }

// load creates a version under a name: a variant of the file, or a policy of the
// resolver.
func (l *policyLoader) load(name string) (*policy.Version, error) {
	spec := SpecOf(l.file.Policies, name)
	if name == l.opts.Policy {
		spec.Grants = append(slices.Clip(spec.Grants), l.opts.Grants...)
	}
	return l.opts.Resolve(spec)
}

// SpecOf returns the policy that a name selects: a variant of the file, or a name for the
// resolver.
func SpecOf(variants []scenario.PolicyVariant, name string) PolicySpec {
	for _, p := range variants {
		if p.Name == name {
			return PolicySpec{Name: name, Use: p.Use, Config: p.Config, Grants: p.Grant}
		}
	}
	return PolicySpec{Name: name, Use: name}
}

// policyName returns the policy of jobs that name none.
func (e *engine) policyName() string {
	return cmp.Or(e.opts.Policy, e.file.Config.Policy, policy.DefaultName)
}
