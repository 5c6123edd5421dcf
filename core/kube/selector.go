package kube

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Matches is whether labels are selected. A selector that is absent selects
// nothing, an empty one everything.
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

// holds is whether a requirement holds of a label, which is absent when set is
// false. One with an operator that is not known never holds.
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

// isKnown is whether the operator is one that holds knows.
func (r *Requirement) isKnown() bool {
	return slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}, r.Operator)
}

// pairs is the labels of a selector that asks for equal labels alone; ok is false
// for one that asks for more, or for nothing.
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

// keys lists the labels that a selector reads.
func (s *LabelSelector) keys(tell func(string)) {
	if s == nil {
		return
	}
	for k := range s.Labels {
		tell(k)
	}
	for i := range s.Expressions {
		tell(s.Expressions[i].Key)
	}
}

// canonical is a text that is the same for equal values.
func canonical(v any) string {
	text, _ := json.Marshal(v) // plain values
	return string(text)
}

// matches is whether all requirements of a term hold of a node.
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
