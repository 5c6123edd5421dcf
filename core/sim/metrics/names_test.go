package metrics_test

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// Every name that a run can have is accepted.
func TestCheckName_AcceptsNamesOfFlatten(t *testing.T) {
	t.Parallel()
	one, real := 1, 1.0
	by := map[string]float64{"cpu": 1, "nvidia.com/gpu": 1}
	m := &metrics.Metrics{
		Replicas:      metrics.Replicas{BoundReplicas: &one, UnboundReplicas: &one, EvictedReplicas: &one},
		RegretVictims: &one, VictimsPerPreemption: &metrics.PerPreemption{}, Waste: metrics.Waste{Moved: &one, WastedWork: by, WastedHours: by},
		Goodput: &real, BudgetViolations: &one, GangsBroken: &one, QueueDelay: map[string]metrics.Quantiles{"75": {}, "0..10": {}, "-5": {}},
		Utilisation: by, Fragmentation: by, Jain: &real, DecisionLatency: &metrics.Latency{},
		Optimality: metrics.Optimality{
			BoundedDecisions: &one, ProvenOptimal: &real, MissedPlacements: &one, DecisionLoss: &real, DecisionLossBound: &real, OptimalityGap: &real,
			DecisionRegret: &real, UnplacedBound: &one, UnplacedWeight: &one, UnplacedWeightBound: &one, LostWorkBound: &real,
		},
	}
	seen := map[string]bool{}
	for _, v := range m.Flatten() {
		if err := metrics.CheckName(v.Name); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		d, _ := metrics.Define(v.Name)
		seen[d.Name] = true
	}
	for _, d := range metrics.Definitions {
		if !seen[d.Name] {
			t.Errorf("no value of %s", d.Name)
		}
	}
}

func TestCheckName_NamesMissingParts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"queueDelay":           "metric queueDelay has several values: write queueDelay.BAND.PART, where PART is mean, p50, p90, p99 or max and BAND a band of priorities, such as 75",
		"queueDelay.75":        "write queueDelay.BAND.PART",
		"queueDelay.p99":       "write queueDelay.BAND.PART",
		"queueDelay..p99":      "write queueDelay.BAND.PART",
		"queueDelay.75.p95":    "write queueDelay.BAND.PART",
		"wastedWork":           "write wastedWork.RESOURCE, such as wastedWork.cpu",
		"wastedWork.":          "write wastedWork.RESOURCE",
		"victimsPerPreemption": "write victimsPerPreemption.PART, where PART is mean, p95 or max",
		"cascadeDepth.p50":     "write cascadeDepth.PART, where PART is p99 or max",
		"victims.mean":         "metric victims has one value: write victims",
		"speed":                "unknown metric speed",
	} {
		if err := metrics.CheckName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
