package state

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// View is the read side that Snapshot and Txn share.
type View struct {
	index  uint64
	dims   *model.Dimensions
	config *model.SchedulerConfig

	// Invariant: places maps the id of every node that is registered, or that
	// something refers to, to its position; chunks hold all else by position.
	chunks      []*Chunk
	chunksOwner cow.Owner
	places      table[string]
	nodes       int // positions with a registered node
	nodeOrder   *ordering
	classes     table[class]

	jobs     table[*jobRow]
	jobOrder *ordering
	perNode  cow.List // jobs of type system and sysbatch
	labels   [labelIndexes]table[*labelRow]

	allocs  table[*model.Allocation]
	allocAt cow.Vec[int32] // slot -> position in jobRow.allocs

	evals     table[*model.Evaluation]
	evalAt    cow.Vec[int32] // slot -> position in jobRow.evals
	evalOrder *ordering

	claims     table[*model.Claim]
	claimOrder *ordering

	clusters     table[*clusterRow]
	clusterOrder *ordering
	assignments  table[*model.Assignment]
	bindings     int // rows of jobs that hold a binding

	priorities []*model.PriorityClass // ascending by name; replaced whole

	budgets      *budgets // never nil
	budgetCounts cow.Vec[budgetCount]
	discouraging int // nodes with a taint that is a wish
	banishing    int // nodes with a taint for whose sake work leaves

	aside *aside // never nil

	// regrouped is the jobs that go whole of which this entry ended, changed or placed
	// a live allocation, as they came.
	regrouped []model.JobKey
}

// Snapshot is the state at one index.
type Snapshot struct{ View }

func emptyView() View {
	return View{
		dims: model.NewDimensions(), config: &model.SchedulerConfig{Algorithm: model.Binpack},
		nodeOrder: &ordering{}, jobOrder: &ordering{}, evalOrder: &ordering{}, claimOrder: &ordering{}, clusterOrder: &ordering{},
		aside: &aside{}, budgets: noBudgets,
	}
}

func (v *View) at(index uint64) View {
	c := *v
	c.index, c.regrouped = index, nil
	return c
}

// Index is the log index that made this state.
func (v *View) Index() uint64 { return v.index }

// Dims names the resources in use.
func (v *View) Dims() *model.Dimensions { return v.dims }

// Config is what operators set; never nil.
func (v *View) Config() *model.SchedulerConfig { return v.config }
