package composition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// A Part is a policy of a composition.
type Part struct {
	Name   string // unique among the parts
	Module policy.Module
	Config []byte // settings that the composition changes: a JSON object, or nil
	// Limits of one call, from which CallFuel of instances follows.
	Limits policy.Limits
}

// A Module is the code of a composition.
type Module struct {
	name, digest string
	parts        []part
	uses         hookParts
	settings     []sdk.Setting
}

// part is a Part with the names of its settings.
type part struct {
	Part

	own    []sdk.Setting
	prefix string // of its settings in the composition
}

// hookParts holds the indexes of the parts that each hook uses.
type hookParts struct{ eligible, order, option, bindings []int }

func (u *hookParts) any() bool {
	return len(u.eligible)+len(u.order)+len(u.option)+len(u.bindings) > 0
}

var _ policy.Module = (*Module)(nil)

// New returns a composition of parts. The error lists every problem: a name that is no
// part's, settings that a part does not accept, a part without the hook for which it is
// used, and parts that cannot be combined. It starts each part once to read its hooks, without
// settings that are invalid, unless a required setting is missing; Start checks the others.
func New(name, digest string, parts []Part, uses Uses) (*Module, error) {
	m := &Module{name: name, digest: digest}
	var errs []error
	for _, p := range parts {
		if slices.ContainsFunc(m.parts, func(o part) bool { return o.Name == p.Name }) {
			errs = append(errs, fmt.Errorf("two parts are named %s", p.Name))
		}
		m.parts = append(m.parts, part{Part: p, own: p.Module.Settings(), prefix: camelCase(p.Name)})
	}
	for _, h := range []struct {
		to   *[]int
		hook string
		of   []string
	}{
		{&m.uses.eligible, "eligible", uses.Eligible},
		{&m.uses.order, "order", uses.Order},
		{&m.uses.option, "option", uses.Option},
		{&m.uses.bindings, "bindings", uses.Bindings},
	} {
		for _, name := range h.of {
			at := slices.IndexFunc(m.parts, func(p part) bool { return p.Name == name })
			if at < 0 {
				errs = append(errs, fmt.Errorf("%s: unknown part %q", h.hook, name))
				continue
			}
			*h.to = append(*h.to, at)
		}
	}
	errs = append(errs, m.combineSettings())
	if err := errors.Join(errs...); err == nil || m.uses.any() {
		errs = append(errs, m.try())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// try starts the composition with its default settings, unless some are missing.
func (m *Module) try() error {
	if slices.ContainsFunc(m.settings, func(s sdk.Setting) bool { return s.Required }) {
		return nil
	}
	config, err := settings.Read(m.settings, nil)
	if err != nil {
		return err
	}
	in, err := m.Start(config)
	if err != nil {
		return err
	}
	in.Close()
	return nil
}

// Digest implements policy.Module.
func (m *Module) Digest() string { return m.digest }

// Settings returns the settings of all parts. The name of each begins with that of its
// part: leastWasteBands is the setting bands of the part least-waste. Settings that the
// composition changes have the changed value as their default.
func (m *Module) Settings() []sdk.Setting { return m.settings }

// Isolation lists the sandboxes of the parts, policy.NoIsolation among them if a part runs
// in a process without one; "" if all parts are linked into this program.
func (m *Module) Isolation() string {
	var list []string
	for i := range m.parts {
		if s, ok := m.parts[i].Module.(interface{ Isolation() string }); ok {
			if text := s.Isolation(); text != "" && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return strings.Join(list, ", ")
}

// Parts returns the names of the parts that answer a hook, in their order.
func (m *Module) Parts(hook policy.Hooks) []string {
	var of []int
	switch hook {
	case policy.HookDelta:
		of = m.uses.eligible
	case policy.HookScoreVictims, policy.HookSelectVictims:
		of = m.uses.order
	case policy.HookScoreOptions:
		of = m.uses.option
	case policy.HookPreemptBindings:
		of = m.uses.bindings
	}
	names := make([]string, len(of))
	for i, at := range of {
		names[i] = m.parts[at].Name
	}
	return names
}

// Start starts an instance of every part. The error lists every part that cannot be
// started, or that cannot be used as the composition does.
func (m *Module) Start(c *sdk.Config) (policy.Instance, error) {
	in := &instance{m: m}
	var errs []error
	for i := range m.parts {
		p := &m.parts[i]
		running, err := p.Module.Start(p.configOf(c))
		if err != nil {
			errs = append(errs, ofPart(p.Name, err))
			continue
		}
		in.parts = append(in.parts, runningPart{Instance: running, name: p.Name, info: running.Info(), limits: p.Limits})
	}
	if len(errs) == 0 {
		in.assign()
		errs = append(errs, in.check())
	}
	if err := joined(errs); err != nil {
		in.Close()
		return nil, err
	}
	in.describe()
	return in, nil
}

// joined returns the only error as it is, so that a fault of a part remains one.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// ofPart adds the name of a part to its error. A fault remains a *policy.Error.
func ofPart(name string, err error) error {
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		named := *fault
		named.Policy, named.Version, named.Hook = "", "", ""
		named.Err = fmt.Errorf("part %s: %w", name, fault.Err)
		return &named
	}
	return fmt.Errorf("part %s: %w", name, err)
}
