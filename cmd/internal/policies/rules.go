package policies

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// BundleRules compiles rules from the command line, RULES or rules: RULES, to a bundle with
// a manifest that contains them.
func BundleRules(name, text string) (*bundle.Bundle, error) {
	source, err := rules.ParseInline(name, text)
	if err != nil {
		return nil, err
	}
	code, err := rules.Compile(source)
	if err != nil {
		return nil, err
	}
	m := &bundle.Manifest{
		Version: 1, Name: name, Kind: bundle.Wasm, Module: "build/" + name + ".wasm", Digest: bundle.Digest(code),
		ABI: bundle.Range{Min: "1.1"}, Rules: source.Entries(), Build: &bundle.Build{Lang: bundle.Rules, Source: bundle.ManifestFile},
	}
	manifest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return bundle.Assemble(name+".wasm", manifest, nil, code)
}

// compileRules compiles rules from the command line to a module. The error lists every
// problem on one line.
func compileRules(name, text string) ([]byte, error) {
	source, err := rules.ParseInline(name, text)
	if err != nil {
		return nil, problems(err)
	}
	module, err := rules.Compile(source)
	return module, problems(err)
}

// problems returns the problems of rules as errors of one line each.
func problems(err error) error {
	invalid, ok := errors.AsType[*rules.Error](err)
	if !ok {
		return err
	}
	var errs []error
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		text := fmt.Sprintf("column %d: %s", p.Place.Column, p.Reason)
		if p.Entry != "" {
			text = fmt.Sprintf("column %d: %s: %s", p.Place.Column, p.Entry, p.Reason)
		}
		if p.Hint != "" {
			text += "; " + p.Hint
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}
