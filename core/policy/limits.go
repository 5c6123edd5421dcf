package policy

import "time"

// Limits bound what one call of a policy may use. A zero field means the default.
type Limits struct {
	// Fuel is what a call may burn whatever it is asked, FuelPerRow what each row
	// and option of the question adds. Only WebAssembly modules are metered.
	Fuel, FuelPerRow uint64
	// Memory is the most that an instance may hold, in bytes.
	Memory int64
	// Time is how long a call may take. Processes are held to it; a WebAssembly
	// module is stopped by its fuel, which does not depend on the machine.
	Time time.Duration
}

// DefaultLimits are the limits where the operator sets none. They are generous:
// fuel for a policy that compares every row of an option with every other.
var DefaultLimits = Limits{
	Fuel:       50_000_000,
	FuelPerRow: 20_000,
	Memory:     64 << 20,
	Time:       2 * time.Second,
}

// WithDefaults is l with the fields of d where it has none.
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

// CappedAt is l with no field above that of most, where most has one.
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
