package policy

import "time"

// Limits bound the resources of one call of a policy. A zero field means the
// default.
type Limits struct {
	// Fuel is the base limit of a call, and FuelPerRow is added for each row and
	// option of the request. Only WebAssembly modules are metered.
	Fuel, FuelPerRow uint64
	// Memory is the limit of an instance, in bytes.
	Memory int64
	// Time is the limit of a call of a process. A WebAssembly module is stopped by
	// its fuel instead, which does not depend on the machine.
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

// WithDefaults returns l with the fields of d in place of zero fields.
func (l Limits) WithDefaults(d Limits) Limits {
	if l.Fuel == 0 {
		l.Fuel = d.Fuel
	}
	if l.FuelPerRow == 0 {
		l.FuelPerRow = d.FuelPerRow
	}
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	if l.Time == 0 {
		l.Time = d.Time
	}
	return l
}

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
