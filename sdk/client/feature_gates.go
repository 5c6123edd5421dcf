package client

// FeatureGates controls the effect of bindings' priorities.
type FeatureGates struct {
	PriorityBasedScheduling           *bool `json:",omitempty"` // bindings are queued by priority; absent: on
	PriorityBasedPreemptiveScheduling *bool `json:",omitempty"` // bindings evict others; requires the gate above; absent: on
	StrictPriorityClasses             *bool `json:",omitempty"` // bindings with an unknown class are rejected; absent: off
}

// FeatureGate is one of the gates, with its name.
type FeatureGate struct {
	Name    string
	Default bool
	Value   **bool // points into the FeatureGates that it belongs to; nil there: the default
}

// On reports whether the gate is on.
func (g FeatureGate) On() bool {
	if *g.Value == nil {
		return g.Default
	}
	return **g.Value
}

// All returns the gates.
func (g *FeatureGates) All() []FeatureGate {
	return []FeatureGate{
		{"PriorityBasedScheduling", true, &g.PriorityBasedScheduling},
		{"PriorityBasedPreemptiveScheduling", true, &g.PriorityBasedPreemptiveScheduling},
		{"StrictPriorityClasses", false, &g.StrictPriorityClasses},
	}
}

// FeatureGateNames returns the names of the gates.
func FeatureGateNames() (names []string) {
	for _, gate := range new(FeatureGates).All() {
		names = append(names, gate.Name)
	}
	return names
}
