package policies

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition/build"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// inlineNames holds the names of policies that are written in the place of a name, by their
// prefix.
var inlineNames = map[string]string{rules.Prefix: "rules", bundle.UsePrefix: "composition"}

// InlineName returns the name of a policy that is written in the place of a name,
// rules: RULES or use: HOOK: P. It returns "" for others.
func InlineName(p string) string {
	for prefix, name := range inlineNames {
		if strings.HasPrefix(p, prefix) {
			return name
		}
	}
	return ""
}

// MissingHint returns the remedy for a policy p that was taken for a missing file although it
// consists of rules without their prefix. It returns "" for other names.
func MissingHint(p string) string {
	for _, rule := range []string{"eligible", "order", "option"} {
		if strings.HasPrefix(p, rule+":") {
			return "write 'rules: " + p + "' in the place of a policy"
		}
	}
	return ""
}

// BundleInline returns the bundle of a policy of the command line, see InlineName. Paths in a
// composition are relative to dir; builder creates it.
func BundleInline(ctx context.Context, builder *build.Builder, name, dir, text string) (*bundle.Bundle, error) {
	if strings.HasPrefix(text, bundle.UsePrefix) {
		return builder.Bundle(ctx, name, dir, text)
	}
	return BundleRules(name, text)
}

// NewBuilder returns a builder of compositions without servers.
func NewBuilder() *build.Builder {
	return &build.Builder{
		Parse: func(text string) (use string, config map[string]any, err error) {
			s, err := builtin.Parse(text)
			return s.Use, s.Config, err
		},
		Builtin: func(name string) (policy.Module, bool) {
			m, _, ok := builtin.Module(name)
			return m, ok
		},
		Builtins: builtin.Names(),
		Compile:  compileRules,
	}
}

// CheckInline returns an error if a policy of the command line is a text that cannot be
// compiled; see InlineName.
func CheckInline(p string) error {
	switch {
	case strings.HasPrefix(p, rules.Prefix):
		source, err := rules.ParseInline(InlineName(p), p)
		if err != nil {
			return err
		}
		_, err = rules.Check(source)
		return err
	case strings.HasPrefix(p, bundle.UsePrefix):
		if _, err := bundle.ParseUse(p); err != nil {
			_, err = NewBuilder().Bundle(context.Background(), InlineName(p), "", p) // it adds the problems of parts, and fetches none
			return err
		}
	}
	return nil
}

// openInline returns a version of the text in a request.
func (l *Loader) openInline(ctx context.Context, r Request) (*Policy, error) {
	name := InlineName(r.Use)
	builder := NewBuilder()
	b, err := BundleInline(ctx, builder, name, r.Dir, r.Use)
	if err != nil {
		return nil, errors.Join(err, l.CheckUsableInline(ctx, builder, r))
	}
	config, err := configuration(r.Config, nil)
	if err != nil {
		return nil, err
	}
	if InlineName(r.Name) == "" {
		name = r.Name
	}
	return l.load(ctx, registry.Spec{Name: name, Use: r.Use, Bundle: b, Config: config, Grants: r.Grants, OnFault: r.OnFault, Observe: r.Observe})
}

// An Opener opens the policy of a bundle.
type Opener interface {
	OpenBundle(context.Context, *bundle.Bundle) (*Policy, error)
}

// CheckUsable returns the problems of those policies of a composition that can be used, with each
// other and with their settings, so that they are reported with the problems of its other entries.
// Messages name the file origin; "": the name of the composition.
func CheckUsable(ctx context.Context, open Opener, builder *build.Builder, dir string, use *bundle.Use, origin string) error {
	b, err := builder.Usable(ctx, dir, use)
	if b == nil || err != nil {
		return err
	}
	b.Origin = cmp.Or(origin, b.Origin)
	p, err := open.OpenBundle(ctx, b)
	if err != nil {
		return err
	}
	p.AddRef()
	p.ReleaseRef()
	return nil
}

// CheckUsableInline is CheckUsable for the text of a request, if that is a composition.
func (l *Loader) CheckUsableInline(ctx context.Context, builder *build.Builder, r Request) error {
	if !strings.HasPrefix(r.Use, bundle.UsePrefix) {
		return nil
	}
	use, _ := bundle.ParseUse(r.Use) // BundleInline reports the error
	return CheckUsable(ctx, l, builder, r.Dir, use, "")
}
