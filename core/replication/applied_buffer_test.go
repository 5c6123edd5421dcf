package replication

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/state"
)

// Entries that are applied before there is an observer are not lost, and those that a
// snapshot contains are not observed twice.
func TestAppliedBuffer_BuffersEntriesBeforeAttach(t *testing.T) {
	var got []uint64
	r := &AppliedBuffer{}
	entry := func(i uint64) Applied {
		return Applied{Index: i, Entry: &Entry{}}
	}
	r.Observe([]Applied{entry(1), entry(2)})
	r.Observe([]Applied{{Index: 7, Snap: state.New().Snapshot()}, entry(8)})
	r.Observe([]Applied{entry(9)})
	r.Attach(func(list []Applied) {
		for _, a := range list {
			got = append(got, a.Index)
		}
	})
	r.Observe([]Applied{entry(10)})
	if want := []uint64{7, 8, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("observed %v, want %v", got, want)
	}
}
