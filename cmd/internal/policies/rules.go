package policies

import (
	"context"
	"strings"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/rules"
)

// RulesName is the name of rules that are given in place of a policy.
const RulesName = "rules"

// BundleRules compiles rules from the command line, RULES or rules: RULES, to a bundle
// whose manifest contains them.
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
		ABI: bundle.Range{Min: "1.1"}, Rules: entriesOf(source), Build: &bundle.Build{Lang: bundle.Rules, Source: bundle.ManifestFile},
	}
	manifest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return bundle.Assemble(name+".wasm", manifest, nil, code)
}

// CheckRules returns an error if a policy of the command line is rules that do not compile.
func CheckRules(policy string) error {
	if !strings.HasPrefix(policy, rules.Prefix) {
		return nil
	}
	source, err := rules.ParseInline(RulesName, policy)
	if err != nil {
		return err
	}
	_, err = rules.Check(source)
	return err
}

// entriesOf returns rules as they are written in a manifest.
func entriesOf(s *rules.Source) map[string]any {
	entries := map[string]any{"delta": s.Delta}
	if s.Eligible != nil {
		entries["eligible"] = s.Eligible.Text
	}
	for key, list := range map[string][]rules.Expression{"order": s.Order, "option": s.Option} {
		var texts []string
		for i := range list {
			texts = append(texts, list[i].Text)
		}
		if len(texts) > 0 {
			entries[key] = texts
		}
	}
	return entries
}

// openRules returns a version of the rules in a request.
func (l *Loader) openRules(ctx context.Context, r Request) (*Policy, error) {
	b, err := BundleRules(RulesName, r.Use)
	if err != nil {
		return nil, err
	}
	config, err := configuration(r.Config, nil)
	if err != nil {
		return nil, err
	}
	name := r.Name
	if strings.HasPrefix(name, rules.Prefix) {
		name = RulesName
	}
	return l.load(ctx, registry.Spec{Name: name, Use: r.Use, Bundle: b, Config: config, Grants: r.Grants, OnFault: r.OnFault, Observe: r.Observe})
}
