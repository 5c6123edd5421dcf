package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
)

// UnknownError is a policy that nobody has heard of, or that this version of
// cede cannot run.
type UnknownError struct {
	Policy string
	What   string // what kind of thing it looks like; "": a name
}

func (e *UnknownError) Error() string {
	if e.What != "" {
		return fmt.Sprintf("policy %s: %s cannot be played: not supported yet", e.Policy, e.What)
	}
	return fmt.Sprintf("there is no policy named %q", e.Policy)
}

// Hint is what to do about it.
func (e *UnknownError) Hint() string {
	return "use a built-in policy: " + strings.Join(Names(), ", ")
}

// Resolve makes a version of the policy that spec names.
func Resolve(spec sim.PolicySpec) (*policy.Version, error) {
	named, err := Parse(spec.Use)
	if err != nil {
		return nil, err
	}
	src, ok := Source(named.Use)
	if !ok {
		return nil, &UnknownError{Policy: named.Use, What: kind(named.Use)}
	}
	if spec.Name != "" {
		src.Name = spec.Name
	}
	for _, g := range spec.Grants {
		if !slices.Contains(src.Grants, g) {
			src.Grants = append(src.Grants, g)
		}
	}
	config := maps.Clone(spec.Config)
	if config == nil {
		config = named.Config
	} else {
		maps.Copy(config, named.Config)
	}
	if len(config) > 0 {
		if src.Config, err = json.Marshal(config); err != nil {
			return nil, fmt.Errorf("policy %s: configuration: %w", src.Name, err)
		}
	}
	return policy.NewVersion(src)
}

// kind guesses what somebody meant who names no built-in policy.
func kind(use string) string {
	switch {
	case filepath.Ext(use) == ".wasm":
		return "a WebAssembly module"
	case strings.ContainsAny(use, `/\`):
		return "a policy's folder or executable"
	}
	return ""
}
