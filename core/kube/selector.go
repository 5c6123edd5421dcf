package kube

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Matches reports whether the selector matches the labels. A nil selector matches
// nothing, an empty selector everything.
func (s *LabelSelector) Matches(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for k, v := range s.Labels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	for i := range s.Expressions {
		value, ok := labels[s.Expressions[i].Key]
		if !s.Expressions[i].holds(value, ok) {
			return false
		}
	}
	return true
}

// holds reports whether a label satisfies the requirement. If set is false the label
// is absent. An unknown operator is never satisfied.
func (r *Requirement) holds(value string, set bool) bool {
	switch r.Operator {
	case "In":
		return set && slices.Contains(r.Values, value)
	case "NotIn":
		return !set || !slices.Contains(r.Values, value)
	case "Exists":
		return set
	case "DoesNotExist":
		return !set
	case "Gt", "Lt":
		if !set || len(r.Values) != 1 {
			return false
		}
		have, err1 := strconv.ParseInt(value, 10, 64)
		want, err2 := strconv.ParseInt(r.Values[0], 10, 64)
		return err1 == nil && err2 == nil && (r.Operator == "Gt" && have > want || r.Operator == "Lt" && have < want)
	}
	return false
}

// isKnown reports whether holds supports the operator.
func (r *Requirement) isKnown() bool {
	return slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}, r.Operator)
}

// pairs returns the labels of a selector that consists of equality requirements only.
// It returns false if the selector has other requirements or none.
func (s *LabelSelector) pairs() (map[string]string, bool) {
	all := make(map[string]string, len(s.Labels)+len(s.Expressions))
	maps.Copy(all, s.Labels)
	for i := range s.Expressions {
		r := &s.Expressions[i]
		if r.Operator != "In" || len(r.Values) != 1 {
			return nil, false
		}
		if v, ok := all[r.Key]; ok && v != r.Values[0] {
			return nil, false
		}
		all[r.Key] = r.Values[0]
	}
	return all, len(all) > 0
}

// keys calls visit with each label key that the selector reads.
func (s *LabelSelector) keys(visit func(string)) {
	if s == nil {
		return
	}
	for k := range s.Labels {
		visit(k)
	}
	for i := range s.Expressions {
		visit(s.Expressions[i].Key)
	}
}

// canonical returns a text that is the same for equal values.
func canonical(v any) string {
	text, _ := json.Marshal(v) // cannot fail for these types
	return string(text)
}

// matches reports whether a node satisfies all requirements of the term.
func (t *NodeTerm) matches(name string, labels map[string]string) bool {
	if len(t.Expressions)+len(t.Fields) == 0 {
		return false
	}
	for i := range t.Expressions {
		value, ok := labels[t.Expressions[i].Key]
		if !t.Expressions[i].holds(value, ok) {
			return false
		}
	}
	for i := range t.Fields {
		if t.Fields[i].Key != "metadata.name" || !t.Fields[i].holds(name, true) {
			return false
		}
	}
	return true
}
