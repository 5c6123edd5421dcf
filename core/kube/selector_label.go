package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// podSelectorPrefix begins a label that stands for a selector. The rest of its name is the
// selector, so that whoever adds work to a scenario later can tell whether it is
// selected.
const podSelectorPrefix = "cede.import/pods "

// everything is how a selector without requirements is written.
const everything = "*"

// SelectorLabel is the label that stands for a selector, written as kubectl
// writes selectors: app in (api,web),!canary.
func SelectorLabel(s *LabelSelector) string {
	var terms []string
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		terms = append(terms, k+"="+s.Labels[k])
	}
	for i := range s.Expressions {
		r := &s.Expressions[i]
		list := "(" + strings.Join(slices.Sorted(slices.Values(r.Values)), ",") + ")"
		switch r.Operator {
		case "In":
			terms = append(terms, r.Key+" in "+list)
		case "NotIn":
			terms = append(terms, r.Key+" notin "+list)
		case "Exists":
			terms = append(terms, r.Key)
		case "DoesNotExist":
			terms = append(terms, "!"+r.Key)
		default:
			return podSelectorPrefix + canonical(s)
		}
	}
	if len(terms) == 0 {
		return podSelectorPrefix + everything
	}
	if !s.isPlain() {
		return podSelectorPrefix + canonical(s)
	}
	return podSelectorPrefix + strings.Join(terms, ",")
}

// isPlain is whether keys and values are written as Kubernetes wants them, so that
// nothing in them can be taken for syntax.
func (s *LabelSelector) isPlain() bool {
	good := func(text string) bool {
		return !strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
		})
	}
	for k, v := range s.Labels {
		if k == "" || !good(k) || !good(v) {
			return false
		}
	}
	for i := range s.Expressions {
		r := &s.Expressions[i]
		if r.Key == "" || !good(r.Key) || slices.ContainsFunc(r.Values, func(v string) bool { return !good(v) }) {
			return false
		}
	}
	return true
}

// ParseSelectorLabel is the selector that a label stands for; false for a label
// that stands for none.
func ParseSelectorLabel(label string) (*LabelSelector, bool) {
	text, ok := strings.CutPrefix(label, podSelectorPrefix)
	if !ok {
		return nil, false
	}
	s := &LabelSelector{}
	switch {
	case text == everything:
		return s, true
	case strings.HasPrefix(text, "{"):
		return s, json.Unmarshal([]byte(text), s) == nil
	}
	for text != "" {
		var term string
		term, text = cutTerm(text)
		r, err := parseTerm(term)
		if err != nil {
			return nil, false
		}
		s.Expressions = append(s.Expressions, r)
	}
	return s, true
}

// cutTerm cuts at the first comma that is not within parentheses.
func cutTerm(text string) (term, rest string) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				return text[:i], text[i+1:]
			}
		}
	}
	return text, ""
}

func parseTerm(term string) (Requirement, error) {
	if key, ok := strings.CutPrefix(term, "!"); ok {
		return Requirement{Key: key, Operator: "DoesNotExist"}, nil
	}
	for _, form := range [][2]string{{" in (", "In"}, {" notin (", "NotIn"}} {
		if key, list, ok := strings.Cut(term, form[0]); ok && strings.HasSuffix(list, ")") {
			return Requirement{Key: key, Operator: form[1], Values: strings.Split(strings.TrimSuffix(list, ")"), ",")}, nil
		}
	}
	if key, value, ok := strings.Cut(term, "="); ok {
		return Requirement{Key: key, Operator: "In", Values: []string{value}}, nil
	}
	if term == "" || strings.ContainsAny(term, " ()") {
		return Requirement{}, fmt.Errorf("%.40q is no requirement", term)
	}
	return Requirement{Key: term, Operator: "Exists"}, nil
}
