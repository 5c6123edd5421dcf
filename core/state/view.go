package state

import (
	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
)

// A View is the read side that Snapshot and Txn share: one value for each table.
// Each table has its own fields and reads; what needs several tables is a method
// of View. Copying a View is a snapshot, since every table is persistent.
type View struct {
	index      uint64
	restoredAt uint64 // see RestoredAt
	dims       *model.Dimensions

	nodeTable
	jobTable
	allocTable
	evalTable
	claimTable
	clusterTable
	assignmentTable
	budgetTable
	configTable
	*smallTables // never nil

	// changedCohorts lists the all-or-none jobs of which this entry ended, changed
	// or placed a live allocation, in that order. It may contain duplicates.
	changedCohorts []model.JobKey
}

// A Snapshot is the immutable state at one index.
type Snapshot struct{ View }

func emptyView() View {
	return View{
		dims:         model.NewDimensions(),
		nodeTable:    newNodeTable(),
		jobTable:     newJobTable(),
		evalTable:    newEvalTable(),
		claimTable:   newClaimTable(),
		clusterTable: newClusterTable(),
		budgetTable:  budgetTable{budgets: noBudgets},
		configTable:  configTable{config: &model.SchedulerConfig{Algorithm: model.Binpack}},
		smallTables:  &smallTables{},
	}
}

func (v *View) at(index uint64) View {
	c := *v
	c.index, c.changedCohorts = index, nil
	return c
}

// Index returns the log index of this state.
func (v *View) Index() uint64 { return v.index }

// RestoredAt returns the index at which the whole state was last replaced, by a snapshot that
// was restored or loaded at a start; 0: never. Values retain the indexes of the snapshot, so
// that their ModifyIndex does not show the replacement.
func (v *View) RestoredAt() uint64 { return v.restoredAt }

// Dims returns the resource names in use.
func (v *View) Dims() *model.Dimensions { return v.dims }

// The hashes below find slots only; no result depends on them.

func hashID(id string) uint32 { return uint32(xxhash.Sum64String(id)) }

func hashJob(k model.JobKey) uint32 {
	// Most jobs are in the default namespace, so a cheap combination suffices.
	return uint32(xxhash.Sum64String(k.ID) + 31*xxhash.Sum64String(k.Namespace))
}

func hashClass(key uint64) uint32 { return uint32(key ^ key>>32) }

func hashLabel(l label) uint32 {
	return uint32(xxhash.Sum64String(l.key) ^ xxhash.Sum64String(l.value)*31)
}
