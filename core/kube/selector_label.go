package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// podSelectorPrefix is the prefix of selector labels. The rest of the label is the
// selector itself, so that groups added to a scenario later can be matched as well.
const podSelectorPrefix = "cede.import/pods "

// everything is the text of a selector without requirements.
const everything = "*"

// SelectorLabel returns the label of a selector in the syntax of kubectl, such as
// "app in (api,web),!canary". Selectors that this syntax cannot represent are JSON.
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

// isPlain reports whether all keys and values consist of characters that Kubernetes
// allows in labels, so that none of them can be confused with syntax.
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

// ParseSelectorLabel returns the selector of a selector label, or false if the label
// is not a selector label.
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

// cutTerm cuts at the first comma outside parentheses.
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
		return Requirement{}, fmt.Errorf("invalid requirement %.40q", term)
	}
	return Requirement{Key: term, Operator: "Exists"}, nil
}
