package client

// FeatureGates switch what bindings get of their priorities.
type FeatureGates struct {
	PriorityBasedScheduling           *bool `json:",omitempty"` // they are queued by priority; absent: on
	PriorityBasedPreemptiveScheduling *bool `json:",omitempty"` // they evict, not without the other; absent: on
	StrictPriorityClasses             *bool `json:",omitempty"` // a class that is not there is refused; absent: off
}

// FeatureGate is one of the gates, by its name.
type FeatureGate struct {
	Name    string
	Default bool
	Value   **bool // in the gates that it is of; nil there: the default
}

// On is whether the gate is on.
func (g FeatureGate) On() bool {
	if *g.Value == nil {
		return g.Default
	}
	return **g.Value
}

// All lists the gates.
func (g *FeatureGates) All() []FeatureGate {
	return []FeatureGate{
		{"PriorityBasedScheduling", true, &g.PriorityBasedScheduling},
		{"PriorityBasedPreemptiveScheduling", true, &g.PriorityBasedPreemptiveScheduling},
		{"StrictPriorityClasses", false, &g.StrictPriorityClasses},
	}
}

// FeatureGateNames lists the names of the gates.
func FeatureGateNames() (names []string) {
	for _, gate := range new(FeatureGates).All() {
		names = append(names, gate.Name)
	}
	return names
}
