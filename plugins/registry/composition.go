package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/composition"
)

// maxNesting is the maximum depth of compositions in compositions. It bounds the work of
// loading an archive of any content.
const maxNesting = 8

// composed is a composition with the modules that it holds.
type composed struct {
	*composition.Module

	modules []Module
}

// Close implements Module.
func (c *composed) Close() {
	for _, m := range c.modules {
		m.Close()
	}
}

// loadComposition loads the parts of a composition. The signature of its manifest covers all
// of them. The error lists every part that this process cannot load, and every problem of the
// others.
func (o *Options) loadComposition(ctx context.Context, b *bundle.Bundle) (Module, error) {
	return o.compose(ctx, b, maxNesting)
}

func (o *Options) compose(ctx context.Context, b *bundle.Bundle, depth int) (Module, error) {
	if depth == 0 {
		return nil, fmt.Errorf("compositions contain each other more than %d deep", maxNesting)
	}
	a, err := composition.Decode(b.Code)
	if err != nil {
		return nil, err
	}
	c := &composed{}
	var parts []composition.Part
	var errs []error
	for i := range a.Parts {
		code := &a.Parts[i]
		m, err := o.loadPart(ctx, b, code, depth)
		if err != nil {
			errs = append(errs, prefixed("part "+code.Name, err))
			continue
		}
		if closer, ok := m.(Module); ok {
			c.modules = append(c.modules, closer)
		}
		parts = append(parts, composition.Part{Name: code.Name, Module: m, Config: code.Config, Limits: o.bounded(code.Limits)})
	}
	uses := a.Uses.Without(func(name string) bool { // their problems are reported already
		return slices.ContainsFunc(a.Parts, func(code composition.Code) bool { return code.Name == name }) &&
			!slices.ContainsFunc(parts, func(p composition.Part) bool { return p.Name == name })
	})
	if len(errs) == 0 || !uses.IsEmpty() {
		if c.Module, err = composition.New(a.Name, bundle.Digest(b.Code), parts, uses); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		c.Close()
		if len(errs) == 1 {
			return nil, errs[0] // a fault of a part remains one
		}
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// prefixed adds a name to an error, and to each one of joined errors.
func prefixed(name string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, prefixed(name, e))
	}
	return errors.Join(errs...)
}

// loadPart loads the code of a part.
func (o *Options) loadPart(ctx context.Context, b *bundle.Bundle, code *composition.Code, depth int) (policy.Module, error) {
	part := &bundle.Bundle{
		Code: code.Code, Path: code.Name, Executables: b.Executables,
		Manifest: bundle.Manifest{Name: code.Name, Kind: code.Kind, Digest: code.Digest},
	}
	switch code.Kind {
	case composition.Builtin:
		if m := o.builtin(code.Digest); m != nil {
			return m, nil
		}
		return nil, fmt.Errorf("this version of cede has no built-in policy %s with digest %s", code.Builtin, code.Digest)
	case bundle.Composition:
		return o.compose(ctx, part, depth-1)
	case bundle.Process:
		path, ok := b.Executables[code.Digest]
		if !ok {
			return nil, fmt.Errorf("the executable with checksum %s was not found, or is not permitted here", code.Digest)
		}
		part.Path = path
	case bundle.Wasm:
	default:
		return nil, fmt.Errorf("unknown kind %q: must be one of %v", code.Kind, slices.Concat([]bundle.Kind{composition.Builtin}, bundle.Kinds))
	}
	return o.load(ctx, part, code.Limits)
}
