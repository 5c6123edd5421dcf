package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits bound the resources of one call of a policy. A zero field means the
// default.
type Limits struct {
	// Fuel is the base limit of a call, and FuelPerRow is added for each row and
	// option of the request, up to MaxCallFuel. Only WebAssembly modules are
	// metered.
	Fuel, FuelPerRow uint64
	// Memory is the limit of an instance, in bytes.
	Memory int64
	// Time is the limit of a call. A WebAssembly module normally uses up its fuel
	// first, which does not depend on the machine.
	Time time.Duration
}

// DefaultLimits are the limits that apply unless an operator sets others. They
// leave enough fuel for a policy that compares every row of an option with every
// other.
var DefaultLimits = Limits{
	Fuel:       50_000_000,
	FuelPerRow: 20_000,
	Memory:     64 << 20,
	Time:       2 * time.Second,
}

// MaxLimits are the largest limits. A manifest or a configuration with larger ones
// is rejected.
var MaxLimits = Limits{
	Fuel:       1_000_000_000,
	FuelPerRow: 1_000_000,
	Memory:     256 << 20,
	Time:       30 * time.Second,
}

// MaxCallFuel is the maximum fuel of a call, regardless of its number of rows:
// about half a second of compiled code.
const MaxCallFuel = 2_000_000_000

// CallFuel returns the fuel of a call with the given number of rows and options.
func (l Limits) CallFuel(rows int) uint64 {
	fuel, n := min(l.Fuel, MaxCallFuel), uint64(max(rows, 0))
	if n > 0 && l.FuelPerRow > (MaxCallFuel-fuel)/n {
		return MaxCallFuel
	}
	return fuel + l.FuelPerRow*n
}

// Check returns an error that lists every limit that exceeds MaxLimits.
func (l Limits) Check() error {
	most := MaxLimits
	var errs []error
	for _, v := range []struct {
		name        string
		value, most uint64
	}{{"fuel", l.Fuel, most.Fuel}, {"fuelPerRow", l.FuelPerRow, most.FuelPerRow}} {
		if v.value > v.most {
			errs = append(errs, fmt.Errorf("limits.%s: %d exceeds the maximum of %d", v.name, v.value, v.most))
		}
	}
	if l.Memory > most.Memory {
		errs = append(errs, fmt.Errorf("limits.memory: %d bytes exceed the maximum of %d MiB", l.Memory, most.Memory>>20))
	}
	if l.Time > most.Time {
		errs = append(errs, fmt.Errorf("limits.time: %v exceeds the maximum of %v", l.Time, most.Time))
	}
	return errors.Join(errs...)
}

// WithDefaults returns l with the fields of d in place of zero fields.
func (l Limits) WithDefaults(d Limits) Limits {
	l.Fuel = cmp.Or(l.Fuel, d.Fuel)
	l.FuelPerRow = cmp.Or(l.FuelPerRow, d.FuelPerRow)
	l.Memory = cmp.Or(l.Memory, d.Memory)
	l.Time = cmp.Or(l.Time, d.Time)
	return l
}

// Bounded returns l with DefaultLimits in place of zero fields and each field
// limited to that of MaxLimits.
func (l Limits) Bounded() Limits { return l.WithDefaults(DefaultLimits).CappedAt(MaxLimits) }

// CappedAt returns l with each field limited to that of most, if most sets one.
func (l Limits) CappedAt(most Limits) Limits {
	cut := func(v, most uint64) uint64 {
		if most == 0 {
			return v
		}
		return min(v, most)
	}
	return Limits{
		Fuel: cut(l.Fuel, most.Fuel), FuelPerRow: cut(l.FuelPerRow, most.FuelPerRow),
		Memory: int64(cut(uint64(l.Memory), uint64(most.Memory))),
		Time:   time.Duration(cut(uint64(l.Time), uint64(most.Time))),
	}
}
