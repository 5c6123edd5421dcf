package policy_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
)

// The fuel of a call has a maximum that no limit and no number of rows exceeds: compiled
// code that uses it ends within about half a second.
func TestLimits_BoundFuelOfCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits policy.Limits
		rows   int
		want   uint64
	}{
		{"base and rows", policy.Limits{Fuel: 100, FuelPerRow: 10}, 3, 130},
		{"no rows", policy.Limits{Fuel: 100, FuelPerRow: math.MaxUint64}, 0, 100},
		{"negative rows", policy.Limits{Fuel: 100, FuelPerRow: 10}, -1, 100},
		{"many rows", policy.MaxLimits, 1 << 40, policy.MaxCallFuel},
		{"base beyond the maximum", policy.Limits{Fuel: math.MaxUint64, FuelPerRow: 1}, 1, policy.MaxCallFuel},
		{"overflow", policy.Limits{Fuel: 1, FuelPerRow: math.MaxUint64}, 2, policy.MaxCallFuel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.limits.CallFuel(c.rows); got != c.want {
				t.Errorf("fuel %d, want %d", got, c.want)
			}
		})
	}
}

// Every limit has a maximum, and a limit that is not set has the default: none is unbounded.
func TestLimits_AreBounded(t *testing.T) {
	if got := (policy.Limits{}).Bounded(); got != policy.DefaultLimits {
		t.Errorf("unset limits are %+v, want %+v", got, policy.DefaultLimits)
	}
	huge := policy.Limits{Fuel: math.MaxUint64, FuelPerRow: math.MaxUint64, Memory: math.MaxInt64, Time: math.MaxInt64}
	if got := huge.Bounded(); got != policy.MaxLimits {
		t.Errorf("huge limits are %+v, want %+v", got, policy.MaxLimits)
	}
	negative := policy.Limits{Memory: -1, Time: -time.Second}
	if got := negative.Bounded(); got.Memory <= 0 || got.Time <= 0 {
		t.Errorf("negative limits are %+v", got)
	}
	err := huge.Check()
	for _, name := range []string{"limits.fuel:", "limits.fuelPerRow:", "limits.memory:", "limits.time:"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is missing in the error: %v", name, err)
		}
	}
	if err := policy.MaxLimits.Check(); err != nil {
		t.Errorf("the largest limits: %v", err)
	}
}
