package meter_test

import (
	"errors"
	"slices"
	"testing"
)

// The ticks here were counted by hand from the rules in doc.go.
func TestInstrument_ChargesByTheRules(t *testing.T) {
	for _, c := range []struct {
		module, function string
		args, results    []uint64
		ticks            int64
	}{
		{"control", "empty", nil, nil, 1},
		{"control", "straight", []uint64{5}, []uint64{15}, 1 + 3},
		{"control", "locals", nil, nil, 1 + 3},
		{"control", "count", []uint64{1}, []uint64{1}, 1 + 1 + 1 + 8},
		{"control", "count", []uint64{10}, []uint64{10}, 1 + 1 + 1 + 10*8},
	} {
		for _, e := range engines {
			t.Run(c.function+"/"+e.name, func(t *testing.T) {
				i := run(t, e.config(), instrument(t, fixture(t, c.module)).Code)
				results, ticks, err := i.call(plenty, c.function, c.args...)
				if err != nil || !slices.Equal(results, c.results) || ticks != c.ticks {
					t.Errorf("%s%v = %v, %d ticks, %v; want %v, %d ticks", c.function, c.args, results, ticks, err, c.results, c.ticks)
				}
			})
		}
	}
}

func TestInstrument_StopsWhatRunsForever(t *testing.T) {
	for _, name := range []string{"spin", "spin_if", "recurse"} {
		for _, e := range engines {
			t.Run(name+"/"+e.name, func(t *testing.T) {
				i := run(t, e.config(), instrument(t, fixture(t, "control")).Code)
				if _, ticks, err := i.call(1000, name); !errors.Is(err, errOutOfFuel) {
					t.Errorf("after %d ticks: %v", ticks, err)
				}
			})
		}
	}
}
