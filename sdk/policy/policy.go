package policy

// Policy is what every policy implements.
type Policy interface {
	// Info says what the policy is and needs. It is called before Configure, for
	// its Name alone, and once after it; from then on it must answer the same.
	Info() Info
}

// DeltaHook decides which candidates may be evicted for the preemptor at all.
type DeltaHook interface {
	// PriorityDelta sets gap[row] to the priority gap that candidate requires:
	// it is eligible when preemptor.Priority - candidate.Priority >= gap. On
	// entry every gap is Preemptor.Delta. The host excludes candidates whose
	// priority is not strictly lower, whatever the gap.
	PriorityDelta(in *Candidates, gap []int32, recheck *Recheck) error
}

// VictimScorer decides whom to evict first.
type VictimScorer interface {
	// ScoreVictims sets a tier and a score per row: lower tiers go first, then
	// lower scores, then row order. A score of +Inf means never; NaN and -Inf
	// are faults. On entry all are 0.
	ScoreVictims(in *Candidates, out *VictimScores) error
}

// VictimSelector replaces VictimScorer for policies that pick exactly.
type VictimSelector interface {
	// SelectVictims lists, for each option, rows in the order in which the host
	// shall evict them until the preemptor fits. It must call out.Next once for
	// every option, in order, after the option's picks.
	SelectVictims(in *Candidates, out *Selection) error
}

// OptionScorer chooses among options.
type OptionScorer interface {
	// ScoreOptions sets up to four tiers and a score per option: lower tiers
	// first, compared in order, then the higher score, then option order.
	// Scores must be finite. On entry all are 0.
	ScoreOptions(in *Options, out *OptionScores) error
}

// BindingPreemptor decides which bindings leave which member cluster.
type BindingPreemptor interface {
	// PreemptBindings lists, for each option, rows in the order in which the host
	// shall evict them until the preemptor fits, and ranks the options. An option
	// is a member cluster that would have to hold all that the preemptor still
	// misses; a row is what another binding has there. Of the optional columns
	// BindingColumns come, whatever Info asks for, and no others. It must call
	// out.Next once for every option, in order, after the option's picks.
	//
	// The host takes rows until the preemptor fits, spares those that are
	// redundant, the last first, and asks again with those rows alone: the tiers
	// of that answer choose the cluster, lower ones first, compared in order, then
	// option order. On entry all are 0.
	PreemptBindings(in *Candidates, out *BindingVictims) error
}

// BindingColumns are the optional columns that PreemptBindings sees: the names
// of clusters, and of the rows what they hold, when they started, and whose they
// are.
const BindingColumns = PlaceColumn | UseColumns | StartColumn | JobColumns

// Info is what a policy says of itself.
type Info struct {
	Name    string
	Delta   int32   // base priority gap when the operator sets none
	Columns Columns // optional columns that its hooks read

	// Adaptive asks for ScoreVictims again after each pick, in rounds over all
	// options that do not fit yet, with Need, Freed and the rows brought up to date.
	Adaptive bool
	// Ascending says that victims go by ascending priority whatever else the
	// policy weighs. The host then shows, for each option, no candidate above the
	// lowest priority with which the option fits once everything up to it is gone:
	// the policy would not reach it. Much less has to be laid out and looked at. The
	// same goes for PreemptBindings.
	//
	// With BudgetColumns it may also be said by policies that put budgets before
	// priorities: first go, by ascending priority, those who overrun no budget when
	// all candidates are charged, the highest priority first; then, by ascending
	// priority, the others. The host shows what such a policy would reach, and all
	// candidates where somebody overruns a budget that has something left.
	Ascending bool
	// LeastFirst says that ScoreOptions, which reads StartColumn, takes the option that
	// overruns the fewest budgets (where it reads them; else none counts); of equals the
	// one whose highest victim priority is lowest; then the lowest sum of priorities, each
	// raised by 2^31; then the fewest victims; then the latest Start; and then the first
	// or whatever it likes. The host may then leave out nodes that cannot win: on a large
	// cluster nearly all.
	LeastFirst bool
	// YoungestFirst says that, of the candidates of one priority, who started last goes
	// first, and of equals the first in order; where the policy reads budgets, that it
	// charges candidates the other way round; and that of options that are equal by
	// LeastFirst the first is taken. Together with Ascending, LeastFirst and StartColumn
	// it leaves nothing open, so that the host knows which nodes are worth a question.
	YoungestFirst bool
	// KeepRedundant asks that the lists of SelectVictims stand whole: no early
	// stop, no sparing. It takes effect only where the operator grants it.
	KeepRedundant bool
	// Elastic asks PreemptBindings to be shown elastic bindings in two rows: the
	// replicas above their minimum, and right behind it those that are left, where
	// any are: what a binding has on other clusters counts. Who lists the second has
	// the first leave as well, and of the first no more replicas leave than are
	// needed. Without it a binding leaves a cluster whole.
	Elastic bool
	// MultiCluster asks that where no single cluster can be made to hold all that a
	// divided binding misses, several are, together or not at all. Of each cluster
	// PreemptBindings is asked who would leave to make the most of it; the host takes
	// them by ascending priority over all clusters, in the policy's order within one,
	// and spares whom it can. With Elastic a binding keeps its minimum over all of them,
	// and of equal priorities none is evicted where it is enough to shrink them. Of one
	// that is Ascending as well, everybody who would leave a cluster is asked for.
	MultiCluster bool
}

// Columns is a set of optional columns.
type Columns uint64

// The optional columns. Row columns are in Rows, option columns in Candidates
// or Options.
const (
	// UseColumns: Rows.Use.
	UseColumns Columns = 1 << iota
	// StartColumn: Rows.Start; in Options also Start.
	StartColumn
	// LostWorkColumn: Rows.LostWork; in Options also LostWork.
	LostWorkColumn
	// JobColumns: Rows.Namespace, Rows.Job, Rows.Group.
	JobColumns
	// EvictionColumns: Rows.Evictions, Rows.EvictionLimit.
	EvictionColumns
	// MustLeaveColumn: Rows.MustLeave.
	MustLeaveColumn
	// DeviceColumns: Rows.Devices, and DeviceNeed and DeviceGroup of options.
	DeviceColumns
	// CapacityColumns: Candidates.Capacity, Reserved, Free, Own.
	CapacityColumns
	// PlaceColumn: Candidates.Place and Options.Place.
	PlaceColumn
	// LabelColumns: Rows.Labels.
	LabelColumns
	// AnnotationColumns: Rows.Annotations.
	AnnotationColumns
	// SharedTables: Candidates.Shared and Options.Shared.
	SharedTables
	// VictimColumns: Options.Need, and Options.Victims with the row columns that
	// are asked for.
	VictimColumns
	// FitColumns: Options.FitBefore, FitAfter, Components and Present.
	FitColumns
	// TimeColumns says that answers depend on Now: they are not reused at
	// another time.
	TimeColumns
	// TotalsColumn: Shared.Totals and nothing else of the shared tables. They
	// stay the same while a plan is made, so answers are reused for longer: weigh
	// by them, but decline nobody by them, for who was declined is asked about
	// again when the node changes and not when totals do.
	TotalsColumn
	// BudgetColumns: Rows.Budgets, Shared.Budgets, and BudgetViolations of options.
	// An answer about an option may depend on the budgets that its rows name, and
	// not on others.
	BudgetColumns
)

// Has is whether every column of want is in c.
func (c Columns) Has(want Columns) bool { return c&want == want }

// Preemptor is the work that needs room.
type Preemptor struct {
	Namespace, Job, Group string
	JobType               string // service, batch, system, sysbatch, binding
	Priority              int32
	Delta                 int32     // base gap: the operator's, else Info.Delta
	Ask                   []float64 // by dimension
	Ports                 int       // host ports needed
	Devices               []DeviceAsk
	Labels                map[string]string
	Annotations           map[string]float64
	// Waiting is how long the group's instance has waited that has waited
	// longest, in nanoseconds: since the job was submitted, or since the one
	// before it was evicted, lost or otherwise gone.
	Waiting  int64
	Attempts int32 // evaluations of the job so far that ended without placing all of it
}

// DeviceAsk is one device request of the preemptor.
type DeviceAsk struct {
	ID    string // type, vendor/type or vendor/type/model
	Count int32
}

// Candidates is what PriorityDelta, ScoreVictims, SelectVictims and
// PreemptBindings see: options that do not fit yet, each with the allocations (of
// PreemptBindings, the bindings' replicas) that might be evicted for it.
type Candidates struct {
	Now       int64
	Preemptor *Preemptor
	Dims      []string // names of the dimensions
	Strings   []string // what the id columns refer to

	// FirstRow has one more element than there are options: the candidates of
	// option i are rows FirstRow[i] to FirstRow[i+1].
	FirstRow []int32
	// Need[d][i] is what option i still lacks in dimension d: the ask less what
	// is free there less what earlier picks free. Zero or negative: enough.
	Need [][]float64
	// Freed[d][i] is what earlier picks free; all zero before the first round.
	Freed [][]float64
	// DeviceNeed[r][i] is how many instances of the chosen device group request
	// r still lacks, after what earlier requests take of the same group.
	DeviceNeed [][]float64
	// MustLeave[i] is how many rows of option i are marked MustLeave.
	MustLeave []int32

	Place                         []int32 // id of the node
	Capacity, Reserved, Free, Own [][]float64

	Rows   Rows
	Shared *Shared
}

// Len is the number of options.
func (c *Candidates) Len() int { return len(c.FirstRow) - 1 }

// Rows is a table of allocations.
type Rows struct {
	Priority []int32
	Use      [][]float64 // [dimension][row]
	Start    []int64     // when it started to work; Now where it has not yet
	LostWork []int64     // what evicting it now loses
	// Namespace, Job and Group are ids into Strings. Job is unique to namespace
	// and job, Group to namespace, job and group: equal ids mean the same one.
	Namespace, Job, Group []int32
	// Evictions counts the victims of this row's group in the plan so far, on
	// all nodes; EvictionLimit is how many the group takes in one plan before
	// more are to be penalised, 0 meaning any number.
	Evictions, EvictionLimit []int32
	MustLeave                []uint8     // bits of MustLeave*
	Devices                  [][]float64 // [request][row]: instances held of the device group chosen for the request
	Labels                   *LabelTable
	Annotations              *AnnotationTable
	Budgets                  *BudgetRefs
}

// Len is the number of rows.
func (r *Rows) Len() int { return len(r.Priority) }

// Why a row must leave before its option can fit, whatever it frees.
const (
	MustLeavePort       = 1 << iota // it holds a host port that the preemptor needs
	MustLeaveSeparation             // it and the preemptor exclude one another
)

// LabelTable holds the labels of rows: those of row i are pairs First[i] to
// First[i+1].
type LabelTable struct{ First, Key, Value []int32 }

// AnnotationTable holds numbers that operators attached as costs, one column
// per name; NaN where a row has none.
type AnnotationTable struct {
	Names  []string
	Values [][]float64 // [name][row]
}

// BudgetRefs says which disruption budgets evicting a row costs one: those of
// row i are rows At[First[i]] to At[First[i+1]-1] of the table of budgets. A row
// that has not begun to work costs none.
type BudgetRefs struct{ First, At []int32 }

// Shared holds tables that are the same for every option.
type Shared struct {
	Totals     []float64 // capacity of all ready nodes, by dimension
	Namespaces NamespaceTable
	Budgets    BudgetTable
}

// BudgetTable is a row per disruption budget.
type BudgetTable struct {
	Name   []int32 // id, unique to namespace and name
	Slack  []int32 // how many rows under it may go before it is overrun
	Strict []uint8 // 1: the host lets nobody overrun it; 0: policies may
}

// NamespaceTable is a row per namespace.
type NamespaceTable struct {
	Name   []int32 // id
	Weight []float64
	Use    [][]float64 // [dimension][namespace]
}

// Options is what ScoreOptions sees: options that fit once their victims are gone.
type Options struct {
	Now       int64
	Preemptor *Preemptor
	Dims      []string
	Strings   []string

	Node            []int32 // equal values: the same node
	HighestPriority []int32 // of the victims
	VictimCount     []int32
	PrioritySum     []int64
	LostWork        []int64 // nanoseconds, all victims together
	// Start is when the first of the victims with the highest priority started.
	Start []int64
	// BudgetViolations counts the victims whose eviction overruns a budget.
	BudgetViolations []int32
	Place            []int32
	// Need[d][i] is what was missing in dimension d before any victim went, zero
	// or negative: nothing. It comes with VictimColumns.
	Need [][]float64
	// DeviceGroup[r][i] numbers the device group that serves request r;
	// DeviceNeed[r][i] is how many of its instances were missing before any
	// victim went, zero or negative: none.
	DeviceGroup [][]int32
	DeviceNeed  [][]float64

	// FitBefore ranks the node with the victims still counted, FitAfter with
	// them gone, both in [0, 1] by the scheduler's algorithm. Components holds
	// the other parts of the ranking; bit k of Present[i] says whether
	// Components[k][i] takes part.
	FitBefore, FitAfter []float64
	Components          [NumComponents][]float64
	Present             []uint8

	// FirstVictim has one more element than there are options.
	FirstVictim []int32
	Victims     Rows
	Shared      *Shared
}

// Len is the number of options.
func (o *Options) Len() int { return len(o.Node) }

// Component is a part of a node's ranking beside its fit.
type Component int

// The components, each in [-1, 1].
const (
	AntiAffinity Component = iota // other instances of the group on the node
	Affinity                      // weighted wishes
	Spread                        // balance over an attribute
	NumComponents
)

// Recheck carries the time at which the answer may change by time alone.
type Recheck struct{ at int64 }

// At asks for another evaluation at a Unix time in nanoseconds. The earliest
// wish counts.
func (r *Recheck) At(t int64) {
	if r.at == 0 || t < r.at {
		r.at = t
	}
}

// Time is the earliest wish; 0 when there is none.
func (r *Recheck) Time() int64 { return r.at }

// VictimScores is the answer of ScoreVictims, a tier and a score per row.
type VictimScores struct {
	Tier    []int64
	Score   []float64
	Recheck Recheck
}

// OptionScores is the answer of ScoreOptions.
type OptionScores struct {
	Tiers   [4][]int64
	Score   []float64
	Recheck Recheck
}

// BindingVictims is the answer of PreemptBindings.
type BindingVictims struct {
	Selection
	Tiers [4][]int64 // per option
}

// Selection is the answer of SelectVictims.
type Selection struct {
	rows    []int32
	first   []int32
	Recheck Recheck
}

// Reset empties the selection and keeps its memory. The host calls it.
func (s *Selection) Reset() {
	s.rows, s.first, s.Recheck = s.rows[:0], append(s.first[:0], 0), Recheck{}
}

// Pick adds a row (an index into Candidates.Rows) to the current option.
func (s *Selection) Pick(row int) { s.rows = append(s.rows, int32(row)) }

// Next closes the current option.
func (s *Selection) Next() { s.first = append(s.first, int32(len(s.rows))) }

// Len is the number of options closed.
func (s *Selection) Len() int { return len(s.first) - 1 }

// Rows are the picks of option i.
func (s *Selection) Rows(i int) []int32 { return s.rows[s.first[i]:s.first[i+1]] }
