package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Value is one number of a run with its dotted name, such as queueDelay.75.p99.
type Value struct {
	Name  string
	Value float64
}

// Flatten returns every number of m in the order of Definitions, without absent
// metrics. Bands are ordered by priority, ascending.
func (m *Metrics) Flatten() []Value {
	var f flat
	f.count("placed", m.Placed)
	f.count("unplaced", m.Unplaced)
	f.maybe("boundReplicas", m.BoundReplicas)
	f.maybe("unboundReplicas", m.UnboundReplicas)
	f.maybe("evictedReplicas", m.EvictedReplicas)
	f.maybe("moved", m.Moved)
	f.count("preemptions", m.Preemptions)
	f.count("victims", m.Victims)
	if v := m.VictimsPerPreemption; v != nil {
		f.add("victimsPerPreemption.mean", v.Mean)
		f.count("victimsPerPreemption.p95", v.P95)
		f.count("victimsPerPreemption.max", v.Max)
	}
	f.count("uselessVictims", m.UselessVictims)
	f.maybe("regretVictims", m.RegretVictims)
	f.count("repeatVictims", m.RepeatVictims)
	f.count("pingPong", m.PingPong)
	f.count("cascadeDepth.p99", m.CascadeDepth.P99)
	f.count("cascadeDepth.max", m.CascadeDepth.Max)
	f.byName("wastedWork", m.WastedWork)
	f.byName("wastedHours", m.WastedHours)
	if m.Goodput != nil {
		f.add("goodput", *m.Goodput)
	}
	f.maybe("budgetViolations", m.BudgetViolations)
	f.maybe("gangsBroken", m.GangsBroken)
	for _, band := range slices.SortedFunc(maps.Keys(m.QueueDelay), CompareBands) {
		q := m.QueueDelay[band]
		f.add("queueDelay."+band+".mean", q.Mean)
		f.add("queueDelay."+band+".p50", q.P50)
		f.add("queueDelay."+band+".p90", q.P90)
		f.add("queueDelay."+band+".p99", q.P99)
		f.add("queueDelay."+band+".max", q.Max)
	}
	f.count("starved", m.Starved)
	f.add("inversionSeconds", m.InversionSeconds)
	f.byName("utilisation", m.Utilisation)
	f.byName("fragmentation", m.Fragmentation)
	if m.Jain != nil {
		f.add("jain", *m.Jain)
	}
	f.optimality(&m.Optimality)
	if l := m.DecisionLatency; l != nil {
		f.add("decisionLatency.p50", l.P50)
		f.add("decisionLatency.p99", l.P99)
		f.add("decisionLatency.p999", l.P999)
	}
	f.count("policyCalls", m.PolicyCalls)
	f.count("policyFaults", m.PolicyFaults)
	f.count("evaluations.created", m.Evaluations.Created)
	f.count("evaluations.processed", m.Evaluations.Processed)
	f.count("evaluations.cancelled", m.Evaluations.Cancelled)
	return f
}

type flat []Value

func (f *flat) add(name string, v float64) { *f = append(*f, Value{name, v}) }
func (f *flat) count(name string, v int)   { f.add(name, float64(v)) }
func (f *flat) maybe(name string, v *int) {
	if v != nil {
		f.count(name, *v)
	}
}

func (f *flat) byName(name string, of map[string]float64) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		f.add(name+"."+key, of[key])
	}
}

// CompareBands orders names of priority bands by their lowest priority.
func CompareBands(a, b string) int {
	return cmp.Or(cmp.Compare(lowest(a), lowest(b)), strings.Compare(a, b))
}

func lowest(band string) int {
	low, _, _ := strings.Cut(band, "..")
	n, _ := strconv.Atoi(low)
	return n
}
