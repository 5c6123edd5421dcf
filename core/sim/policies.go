package sim

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

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
	byName := map[string]*policy.Version{}
	var versions []*policy.Version
	var errs []error
	for _, name := range names {
		if _, tried := byName[name]; name == "" || tried {
			continue
		}
		v, err := e.load(name)
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
	fallback, err := e.fallback(byName[policy.DefaultName])
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
func (e *engine) fallback(named *policy.Version) (*policy.Version, error) {
	variant := slices.ContainsFunc(e.file.Policies, func(p scenario.PolicyVariant) bool { return p.Name == policy.DefaultName })
	if named != nil && !variant {
		return named, nil
	}
	v, err := e.opts.Resolve(PolicySpec{Name: policy.DefaultName, Use: policy.DefaultName})
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
func (e *engine) load(name string) (*policy.Version, error) {
	spec := PolicySpec{Name: name, Use: name}
	for _, p := range e.file.Policies {
		if p.Name == name {
			spec = PolicySpec{Name: name, Use: p.Use, Config: p.Config, Grants: p.Grant}
		}
	}
	if name == e.opts.Policy {
		spec.Grants = append(slices.Clip(spec.Grants), e.opts.Grants...)
	}
	return e.opts.Resolve(spec)
}

// policyName returns the policy of jobs that name none.
func (e *engine) policyName() string {
	return cmp.Or(e.opts.Policy, e.file.Config.Policy, policy.DefaultName)
}

// versions lists every version that may have been called, each once.
func (e *engine) versions() []*policy.Version { return e.policies.Versions() }
