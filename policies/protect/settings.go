package protect

import (
	"errors"
	"math"
	"strings"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// year bounds durations, in seconds.
const year = 365 * 24 * 3600

// Settings implements policy.Configurable.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{
		{
			Name: "minRuntime", Kind: policy.Duration, Default: "10m", Limits: policy.Between(0, year), Range: policy.Between(0, 3600),
			Doc: "time since its start in which an allocation is not evicted",
		},
		{
			Name: "secondsByNamespace", Kind: policy.Numbers, Limits: policy.Between(0, year),
			Doc: "minRuntime of allocations in a namespace, in seconds by the namespace's name",
		},
		{
			Name: "secondsByLabel", Kind: policy.Numbers, Limits: policy.Between(0, year),
			Doc: "minRuntime of allocations with a label, in seconds by KEY:VALUE; it takes precedence over the namespace's",
		},
		{
			Name: "override", Kind: policy.Integer, Default: "0", Limits: policy.Between(0, 1<<32), Choices: []string{"0", "10", "20", "40"},
			Doc: "priority gap from which protection does not apply; 0: it always applies",
		},
		{
			Name: "maxEvictions", Kind: policy.Integer, Default: "0", Limits: policy.Between(0, 1<<31-1), Choices: []string{"0", "1", "2", "4", "8"},
			Doc: "instances that a group may lose in one plan; 0: unlimited",
		},
		{
			Name: "pause", Kind: policy.Duration, Default: "1m", Limits: policy.Between(1, year), Range: policy.Between(10, 600),
			Doc: "time after which a preemptor that maxEvictions blocked tries again",
		},
	}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	p.minimum = minimum{others: c.Duration("minRuntime")}
	p.override, p.pause = c.Integer("override"), c.Duration("pause")
	p.maxEvictions = int32(c.Integer("maxEvictions"))
	for _, v := range c.Numbers("secondsByNamespace") {
		p.minimum.namespaces = append(p.minimum.namespaces, byNamespace{v.Item, nanoseconds(v.Number)})
	}
	for _, v := range c.Numbers("secondsByLabel") {
		key, value, ok := strings.Cut(v.Item, ":")
		if !ok || key == "" {
			return errors.New("secondsByLabel: " + v.Item + `: invalid value: must be KEY:VALUE, such as "tier:gold"`)
		}
		p.minimum.labels = append(p.minimum.labels, byLabel{key, value, nanoseconds(v.Number)})
	}
	return nil
}

func nanoseconds(seconds float64) int64 { return int64(math.Round(float64(seconds * 1e9))) }
