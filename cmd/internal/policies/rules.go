package policies

import (
	"errors"
	"fmt"
	"strings"

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
		return nil, problems(text, err)
	}
	module, err := rules.Compile(source)
	return module, problems(text, err)
}

// problems returns the problems of rules as errors of one line each. Columns are those of the
// text, which is the name of the part of a composition.
func problems(text string, err error) error {
	invalid, ok := errors.AsType[*rules.Error](err)
	if !ok {
		return err
	}
	prefix := 0
	if rest, ok := strings.CutPrefix(text, rules.Prefix); ok {
		prefix = len(text) - len(strings.TrimLeft(rest, " \t"))
	}
	var errs []error
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		column := p.Place.Column
		if p.Place.Line == 1 {
			column += prefix
		}
		words := fmt.Sprintf("column %d: %s", column, p.Reason)
		if p.Entry != "" {
			words = fmt.Sprintf("column %d: %s: %s", column, p.Entry, p.Reason)
		}
		if p.Hint != "" {
			words += "; " + p.Hint
		}
		errs = append(errs, errors.New(words))
	}
	return errors.Join(errs...)
}
