package fieldcheck_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

func TestChecks_AcceptBoundsAndRefuseValuesBeyond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		valid, invalid []fieldcheck.Problem
	}{
		"count": {
			[]fieldcheck.Problem{fieldcheck.Count(0, "service", false), fieldcheck.Count(fieldcheck.MaxCount, "batch", false), fieldcheck.Count(1, "system", true)},
			[]fieldcheck.Problem{fieldcheck.Count(-1, "service", false), fieldcheck.Count(fieldcheck.MaxCount+1, "batch", false), fieldcheck.Count(2, "system", true)},
		},
		"minCount": {
			[]fieldcheck.Problem{fieldcheck.MinCount(0, 0), fieldcheck.MinCount(3, 3)},
			[]fieldcheck.Problem{fieldcheck.MinCount(-1, 3), fieldcheck.MinCount(4, 3), fieldcheck.MinCount(1, -1)},
		},
		"maxParallelEvictions": {
			[]fieldcheck.Problem{fieldcheck.MaxParallelEvictions(0), fieldcheck.MaxParallelEvictions(math.MaxInt32)},
			[]fieldcheck.Problem{fieldcheck.MaxParallelEvictions(-1), fieldcheck.MaxParallelEvictions(math.MaxInt32 + 1)},
		},
		"duration": {
			[]fieldcheck.Problem{fieldcheck.Duration(0, "0s"), fieldcheck.Duration(fieldcheck.MaxDuration, "50y"), fieldcheck.LostAfter(time.Second)},
			[]fieldcheck.Problem{fieldcheck.Duration(-1, "-1ns"), fieldcheck.Duration(fieldcheck.MaxDuration+1, "50y1ns"), fieldcheck.LostAfter(0)},
		},
		"amount": {
			[]fieldcheck.Problem{fieldcheck.Amount("cpu", 0), fieldcheck.Amount("nvidia.com/gpu", model.MaxAmount)},
			[]fieldcheck.Problem{fieldcheck.Amount("cpu", -1), fieldcheck.Amount("cpu", model.MaxAmount+1), fieldcheck.Amount("", 1), fieldcheck.Amount("a b", 1), fieldcheck.Amount("a\x7f", 1)},
		},
		"annotation": {
			[]fieldcheck.Problem{fieldcheck.Annotation(-1.5)},
			[]fieldcheck.Problem{fieldcheck.Annotation(math.NaN()), fieldcheck.Annotation(math.Inf(-1))},
		},
		"namespace weight": {
			[]fieldcheck.Problem{fieldcheck.NamespaceWeight(1), fieldcheck.NamespaceWeight(0.001)},
			[]fieldcheck.Problem{fieldcheck.NamespaceWeight(0), fieldcheck.NamespaceWeight(-1), fieldcheck.NamespaceWeight(math.NaN()), fieldcheck.NamespaceWeight(math.Inf(1))},
		},
		"namespace": {
			[]fieldcheck.Problem{fieldcheck.NamespaceName("Team_1.a-b"), fieldcheck.NamespaceText(""), fieldcheck.NamespaceText(strings.Repeat("a", 256))},
			[]fieldcheck.Problem{
				fieldcheck.NamespaceName(""), fieldcheck.NamespaceName(".."), fieldcheck.NamespaceName("*"), fieldcheck.NamespaceName("a b"),
				fieldcheck.NamespaceName("a/b"), fieldcheck.NamespaceName(strings.Repeat("a", 129)), fieldcheck.NamespaceText(strings.Repeat("a", 257)),
			},
		},
		"port": {
			[]fieldcheck.Problem{fieldcheck.Port(1, false), fieldcheck.Port(65535, false)},
			[]fieldcheck.Problem{fieldcheck.Port(0, false), fieldcheck.Port(65536, false), fieldcheck.Port(80, true)},
		},
		"device": {
			[]fieldcheck.Problem{fieldcheck.DeviceID("nvidia/gpu/a/b"), fieldcheck.DeviceCount(1), fieldcheck.DeviceCount(fieldcheck.MaxDevices), fieldcheck.DeviceRequests(fieldcheck.MaxRequests)},
			[]fieldcheck.Problem{fieldcheck.DeviceID(""), fieldcheck.DeviceID("nvidia//a100"), fieldcheck.DeviceCount(0), fieldcheck.DeviceCount(fieldcheck.MaxDevices + 1), fieldcheck.DeviceRequests(fieldcheck.MaxRequests + 1)},
		},
		"spread and affinity": {
			[]fieldcheck.Problem{fieldcheck.AffinityWeight(-100), fieldcheck.SpreadWeight(1), fieldcheck.MaxSkew(1), fieldcheck.TargetPercent(0), fieldcheck.TargetSum(100), fieldcheck.SpreadAttribute("zone")},
			[]fieldcheck.Problem{fieldcheck.AffinityWeight(-101), fieldcheck.AffinityWeight(101), fieldcheck.SpreadWeight(0), fieldcheck.MaxSkew(0), fieldcheck.TargetPercent(101), fieldcheck.TargetSum(101), fieldcheck.SpreadAttribute("")},
		},
		"constraint": {
			[]fieldcheck.Problem{
				fieldcheck.Operator("distinct_hosts", true), fieldcheck.DistinctHosts("", ""),
				fieldcheck.Operand(model.OpIsSet, "", nil, ""), fieldcheck.Operand(model.OpDistinctProperty, "2", nil, ""),
				fieldcheck.Operand(model.OpIn, "", []string{"a"}, ""), fieldcheck.Operand(model.OpRegexp, "a+", nil, ""),
				fieldcheck.Operand(model.OpVersion, ">= 1.2", nil, ""), fieldcheck.Operand(model.OpEqual, strings.Repeat("a", 2000), nil, ""),
			},
			[]fieldcheck.Problem{
				fieldcheck.Operator("distinct_hosts", false), fieldcheck.Operator("", true), fieldcheck.DistinctHosts("zone", ""),
				fieldcheck.Operand(model.OpIsSet, "x", nil, ""), fieldcheck.Operand(model.OpDistinctProperty, "0", nil, ""),
				fieldcheck.Operand(model.OpIn, "", nil, ""), fieldcheck.Operand(model.OpIn, "", []string{"a", ""}, ""), fieldcheck.Operand(model.OpEqual, "", nil, ""),
				fieldcheck.Operand(model.OpRegexp, "(", nil, ""), fieldcheck.Operand(model.OpRegexp, strings.Repeat("a", 1001), nil, ""), fieldcheck.Operand(model.OpVersion, "soon", nil, ""),
			},
		},
	} {
		for i, p := range c.valid {
			if p.Found() {
				t.Errorf("%s: valid value %d: %+v", name, i, p)
			}
		}
		for i, p := range c.invalid {
			if !p.Found() {
				t.Errorf("%s: invalid value %d was accepted", name, i)
			}
		}
	}
}

func TestToleration_ReportsTheFieldAtFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		toleration        model.Toleration
		value, key, limit bool
	}{
		"equal":                 {toleration: model.Toleration{Key: "gpu", Value: "a"}},
		"every taint":           {toleration: model.Toleration{Operator: model.TolerationExists}},
		"value without meaning": {toleration: model.Toleration{Key: "gpu", Operator: model.TolerationExists, Value: "a"}, value: true},
		"no key":                {toleration: model.Toleration{Operator: model.TolerationEqual}, key: true},
		"limit":                 {toleration: model.Toleration{Key: "gpu", Effect: model.NoExecute, For: 1e9}},
		"limit too short":       {toleration: model.Toleration{Key: "gpu", Effect: model.NoExecute, For: 1e9 - 1}, limit: true},
		"limit without effect":  {toleration: model.Toleration{Key: "gpu", Effect: model.NoSchedule, For: 1}, limit: true},
	} {
		value, key, limit := fieldcheck.Toleration(c.toleration)
		if value.Found() != c.value || key.Found() != c.key || limit.Found() != c.limit {
			t.Errorf("%s: got %+v, %+v, %+v", name, value, key, limit)
		}
	}
}
