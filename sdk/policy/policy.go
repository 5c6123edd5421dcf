package policy

import "math"

// Policy is implemented by every policy.
type Policy interface {
	// Info returns the policy's name, requirements and properties. The host calls it
	// before Configure, for Name alone, and once after it. From then on it must
	// return the same value.
	Info() Info
}

// NeverEligible is the gap of a candidate that must not be evicted, however far apart the
// priorities are: two of them may differ by more than any gap.
const NeverEligible = math.MaxInt32

// DeltaHook decides which candidates may be evicted for the preemptor at all.
type DeltaHook interface {
	// PriorityDelta sets gap[row] to the priority gap that the candidate requires.
	// The candidate is eligible if preemptor.Priority - candidate.Priority >= gap. On
	// entry every gap is Preemptor.Delta. The host excludes candidates whose priority
	// is not strictly lower than the preemptor's, whatever the gap, and those with the
	// gap NeverEligible.
	PriorityDelta(in *Candidates, gap []int32, recheck *Recheck) error
}

// VictimScorer determines the order in which candidates are evicted.
type VictimScorer interface {
	// ScoreVictims sets a tier and a score per row. The host evicts lower tiers
	// first, then lower scores, then in row order. A score of +Inf excludes the row;
	// NaN and -Inf are faults. On entry all values are 0.
	ScoreVictims(in *Candidates, out *VictimScores) error
}

// VictimSelector replaces VictimScorer in policies that select an exact set of victims.
type VictimSelector interface {
	// SelectVictims lists, for each option, rows in the order in which the host
	// evicts them until the preemptor fits. It must call out.Next exactly once per
	// option, in order, after the picks of the option.
	SelectVictims(in *Candidates, out *Selection) error
}

// OptionScorer ranks the options.
type OptionScorer interface {
	// ScoreOptions sets up to four tiers and a score per option. The host prefers
	// lower tiers, compared in order, then the higher score, then option order.
	// Scores must be finite. On entry all values are 0.
	ScoreOptions(in *Options, out *OptionScores) error
}

// BindingPreemptor selects the bindings that are evicted from a member cluster.
type BindingPreemptor interface {
	// PreemptBindings lists, for each option, rows in the order in which the host
	// evicts them until the preemptor fits, and ranks the options. An option is a
	// member cluster that would hold all replicas that the preemptor still lacks. A
	// row is the part of another binding that is assigned to this cluster. The
	// optional columns are always BindingColumns, whatever Info requests. The hook
	// must call out.Next exactly once per option, in order, after the picks of the
	// option.
	//
	// The host evicts rows until the preemptor fits and reprieves redundant rows, the
	// last one first. It then calls the hook again with the remaining rows alone. The
	// tiers of that answer choose the cluster: lower tiers first, compared in order,
	// then option order. On entry all values are 0.
	PreemptBindings(in *Candidates, out *BindingVictims) error
}

// BindingColumns are the optional columns of PreemptBindings: the cluster of each
// option, and the resource use, the start time and the job columns of each row.
const BindingColumns = PlaceColumn | UseColumns | StartColumn | JobColumns

// Info describes a policy to the host.
type Info struct {
	Name    string
	Delta   int32   // base priority gap if the operator sets none
	Columns Columns // optional columns that its hooks read

	// Adaptive requests another call of ScoreVictims after each pick. Each round
	// holds all options that do not fit yet, with Need, Freed and the rows brought up
	// to date.
	Adaptive bool
	// Ascending declares that victims are evicted by ascending priority, whatever
	// else the policy weighs. For each option, the host then omits candidates above
	// the lowest priority at which the option fits if everything up to it is evicted,
	// because the policy would not reach them. This makes calls much smaller. The
	// same holds for PreemptBindings.
	//
	// With BudgetColumns, a policy may also set it if it puts budgets before
	// priorities: first, by ascending priority, the rows that overrun no budget when
	// all candidates are charged, the highest priority first; then, by ascending
	// priority, the others. The host passes the rows that such a policy would reach,
	// and all candidates if a row overruns a budget that is not exhausted.
	Ascending bool
	// LeastFirst declares how ScoreOptions, which reads StartColumn, ranks options:
	// first the fewest overrun budgets (if the policy reads budgets), then the lowest
	// highest victim priority, then the lowest sum of priorities, each raised by
	// 2^31, then the fewest victims, then the latest Start, then any order. The host
	// may then omit nodes that cannot win, which on a large cluster are nearly all
	// nodes.
	LeastFirst bool
	// Monotone declares that the tiers of ScoreOptions depend on VictimCount,
	// HighestPriority, PrioritySum, BudgetViolations, LostWork, Start and the columns of
	// RelocationColumns and LookAheadColumns alone, and that they do not fall if one of
	// these rises, or if Start falls. PrioritySum counts as if each priority were raised by
	// 2^31. With VictimColumns they may also depend on Priority, Use, LostWork, Start, MustLeave, annotations and where
	// it could run of each victim, and do not fall if a victim is added, or if one of these but
	// an annotation rises, or if Start falls. Tiers are compared in order: a later one may fall
	// if an earlier one rises.
	//
	// The host may then omit nodes, and topology domains of a gang, in which no option
	// can have lower tiers than the best one found so far: it calls ScoreOptions about
	// fictitious victims that cost no more than those of any option there.
	Monotone bool
	// YoungestFirst declares three properties. Among candidates of one priority, the
	// one that started last is evicted first, and the first in order among equals. If
	// the policy reads budgets, it charges candidates in the opposite order. Among
	// options that are equal by LeastFirst, the first one wins. Together with
	// Ascending, LeastFirst and StartColumn the result is determined, so that the
	// host can determine which nodes are worth a call.
	YoungestFirst bool
	// KeepRedundant requests that the lists of SelectVictims are evicted whole,
	// without early stop and reprieve. It takes effect only if the operator grants
	// it.
	KeepRedundant bool
	// Elastic requests two rows per elastic binding in PreemptBindings: the replicas
	// above its minimum, and directly after it the remaining replicas, if there are
	// any. Replicas on other clusters count towards the minimum. If the second row is
	// picked, the first is evicted as well; of the first row the host removes only as
	// many replicas as it needs. If Elastic is false, a binding is evicted whole from
	// a cluster.
	Elastic bool
	// MultiCluster requests a search over several clusters if no single cluster can
	// hold all replicas that a divided binding lacks. Either all clusters of the
	// result are used or none. For each cluster the host calls PreemptBindings for
	// the victims that free the most. It evicts them by ascending priority over all
	// clusters, in the policy's order within one cluster, and reprieves as many as it
	// can. With Elastic a binding retains its minimum over all clusters, and among
	// equal priorities bindings are shrunk before any is evicted. If the policy is
	// Ascending as well, the host requests all victims of a cluster.
	//
	// If a binding must be within one region, each region is searched by itself. The tiers of a
	// last call, with the victims of one region as one cluster, rank the regions.
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
	// are requested.
	VictimColumns
	// FitColumns: Options.FitBefore, FitAfter, Components and Present.
	FitColumns
	// TimeColumns declares that answers depend on Now. The host does not reuse them
	// at another time.
	TimeColumns
	// TotalsColumn: Shared.Totals without the other shared tables. The totals do not
	// change while a plan is computed, so that answers are reused for longer. Use
	// them as a weight, but not to exclude a candidate: an excluded candidate is
	// offered again when its node changes, but not when the totals change.
	TotalsColumn
	// BudgetColumns: Rows.Budgets, Shared.Budgets, and BudgetViolations of options.
	// The answer for an option may depend only on budgets that its rows reference.
	BudgetColumns
	// RelocationColumns: Rows.Relocation, DisplacedPriority and DisplacedLostWork; in
	// Options Stranded, Displacing, DisplacedPriority and DisplacedLostWork. They state
	// where victims could run instead, and depend on the whole cluster. Use them as a
	// weight, but not to exclude a candidate: an excluded candidate is offered again when
	// its own node changes, but not when other nodes change. Bindings have no such columns.
	RelocationColumns
	// LookAheadColumns: ExpectedLostWork, CascadeDepth and ExpectedDelay in Options. The
	// host calls ScoreOptions twice: about all options, with zeros in these columns, and
	// then about the few best of them, after it has played the consequences of each. The
	// second answer decides. The columns stay zero in calls about a single option, about ways
	// to place a gang and about system jobs, inside what is played, once the plays of an
	// evaluation have used up their fuel, and where another scheduler places (cede
	// kubernetes). Bindings have no such columns.
	LookAheadColumns
)

// Has reports whether c contains every column of want.
func (c Columns) Has(want Columns) bool { return c&want == want }

// Preemptor describes the task group or binding that lacks capacity.
type Preemptor struct {
	Namespace, Job, Group string
	JobType               string // service, batch, system, sysbatch, binding
	Priority              int32
	Delta                 int32     // base gap: the operator's, or Info.Delta if it is not set
	Ask                   []float64 // requested resources, by dimension
	Ports                 int       // host ports needed
	Devices               []DeviceAsk
	Labels                map[string]string
	Annotations           map[string]float64
	// Waiting is the longest time that an instance of the group has been pending, in
	// nanoseconds: since the job was submitted, or since its predecessor was evicted,
	// was lost or ended otherwise.
	Waiting  int64
	Attempts int32 // evaluations of the job so far that did not place all of it
}

// DeviceAsk is one device request of the preemptor.
type DeviceAsk struct {
	ID    string // type, vendor/type or vendor/type/model
	Count int32
}

// Candidates is the input of PriorityDelta, ScoreVictims, SelectVictims and
// PreemptBindings: options that do not fit yet, each with the allocations that may be
// evicted for it. For PreemptBindings the rows are replicas of bindings.
type Candidates struct {
	Now       int64
	Preemptor *Preemptor
	Dims      []string // names of the dimensions
	Strings   []string // strings that the id columns index

	// FirstRow has one more element than there are options: the candidates of
	// option i are rows FirstRow[i] to FirstRow[i+1].
	FirstRow []int32
	// Need[d][i] is the amount of dimension d that option i still lacks: the request
	// less the free capacity less the amount that earlier picks free. If it is zero
	// or negative, there is enough.
	Need [][]float64
	// Freed[d][i] is the amount that earlier picks free; it is zero before the first round.
	Freed [][]float64
	// DeviceNeed[r][i] is the number of instances of the chosen device group that
	// request r still lacks, after earlier requests have used instances of the same
	// group.
	DeviceNeed [][]float64
	// MustLeave[i] is the number of rows of option i that are marked MustLeave.
	MustLeave []int32

	Place                         []int32 // id of the node
	Capacity, Reserved, Free, Own [][]float64

	Rows   Rows
	Shared *Shared
}

// Len returns the number of options.
func (c *Candidates) Len() int { return len(c.FirstRow) - 1 }

// Rows is a table of allocations.
type Rows struct {
	Priority []int32
	Use      [][]float64 // [dimension][row]
	Start    []int64     // start time; Now if the allocation has not started yet
	LostWork []int64     // work that is lost if the row is evicted now
	// Namespace, Job and Group are indexes into Strings. A Job is unique per
	// namespace and job, a Group per namespace, job and group: equal indexes mean the
	// same object.
	Namespace, Job, Group []int32
	// Evictions counts the victims of this row's group in the plan so far, on all
	// nodes. EvictionLimit is the number of victims per plan above which the policy
	// should penalise the group; 0 means unlimited.
	Evictions, EvictionLimit []int32
	MustLeave                []uint8     // bits of MustLeave*
	Devices                  [][]float64 // [request][row]: instances held of the device group chosen for the request
	Labels                   *LabelTable
	Annotations              *AnnotationTable
	Budgets                  *BudgetRefs

	// Relocation is where the row could run if it were evicted alone: Relocation*.
	Relocation []uint8
	// DisplacedPriority is the highest priority, and DisplacedLostWork the lost work in
	// nanoseconds, of the allocations that a row with RelocationEvicts would evict in its
	// turn; math.MinInt32 and 0 in other rows. They are the least that the host has found.
	DisplacedPriority []int32
	DisplacedLostWork []int64
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.Priority) }

// Reasons for which a row must be evicted before its option can fit.
const (
	MustLeavePort       = 1 << iota // it holds a host port that the preemptor needs
	MustLeaveSeparation             // an anti-affinity rule separates it from the preemptor
)

// Where a row could run if it were evicted, in the order of preference. The host applies
// the rules by which it places instances to all nodes but the row's own, in the state that
// the plan so far leads to. It considers each row by itself, examines a limited number of
// nodes, and counts the others as unfit.
const (
	RelocationFree   = iota // another node has enough free capacity
	RelocationEvicts        // another node has, once allocations that the row may evict have left
	RelocationNone          // no other node
)

// LabelTable holds the labels of rows: those of row i are the pairs First[i] to
// First[i+1], ascending by key.
type LabelTable struct{ First, Key, Value []int32 }

// AnnotationTable holds numeric costs that operators attached, one column per name,
// ascending by name.
// The value is NaN if a row has no such annotation.
type AnnotationTable struct {
	Names  []string
	Values [][]float64 // [name][row]
}

// BudgetRefs holds the disruption budgets that are charged if a row is evicted: those
// of row i are rows At[First[i]] to At[First[i+1]-1] of the table of budgets. A row
// that has not started charges none.
type BudgetRefs struct{ First, At []int32 }

// Shared holds tables that are the same for every option.
type Shared struct {
	Totals     []float64 // capacity of all ready nodes, by dimension
	Namespaces NamespaceTable
	Budgets    BudgetTable
}

// BudgetTable holds one row per disruption budget.
type BudgetTable struct {
	Name   []int32 // id, unique to namespace and name
	Slack  []int32 // number of rows that may still be evicted without overrunning it
	Strict []uint8 // 1: the host never overruns it; 0: a policy may
}

// NamespaceTable holds one row per namespace.
type NamespaceTable struct {
	Name   []int32 // id
	Weight []float64
	Use    [][]float64 // [dimension][namespace]
}

// Options is the input of ScoreOptions: options that fit once their victims are
// evicted.
type Options struct {
	Now       int64
	Preemptor *Preemptor
	Dims      []string
	Strings   []string

	Node            []int32 // equal values mean the same node
	HighestPriority []int32 // of the victims
	VictimCount     []int32
	PrioritySum     []int64
	LostWork        []int64 // nanoseconds, the sum over all victims
	// Start is the earliest start time of the victims with the highest priority.
	Start []int64
	// BudgetViolations counts the victims whose eviction overruns a budget.
	BudgetViolations []int32
	// Stranded counts the victims with RelocationNone, Displacing those with
	// RelocationEvicts. DisplacedPriority is the highest priority that the latter would
	// evict, math.MinInt32 if there are none, and DisplacedLostWork the lost work of all
	// that they would evict, in nanoseconds.
	Stranded, Displacing []int32
	DisplacedPriority    []int32
	DisplacedLostWork    []int64
	// The consequences of the option within the next ten minutes, if no other work arrives
	// and the same policy decides. ExpectedLostWork is the lost work of all evictions, those
	// of the option included, in nanoseconds. CascadeDepth is the length of the longest
	// chain of evictions: 1 if no victim evicts in its turn. ExpectedDelay is the time for
	// which evicted instances do not run, in nanoseconds, summed over them; an instance that
	// has not started again counts until the end of the ten minutes.
	ExpectedLostWork []int64
	CascadeDepth     []int32
	ExpectedDelay    []int64
	Place            []int32
	// Need[d][i] is the amount of dimension d that was missing before any victim was
	// evicted; zero or negative if nothing was missing. VictimColumns requests it.
	Need [][]float64
	// DeviceGroup[r][i] is the number of the device group that serves request r.
	// DeviceNeed[r][i] is the number of its instances that were missing before any
	// victim was evicted; zero or negative if none were.
	DeviceGroup [][]int32
	DeviceNeed  [][]float64

	// FitBefore is the rank of the node with the victims still counted, FitAfter
	// without them, both in [0, 1] by the scheduler's algorithm. Components holds the
	// other parts of the rank. Bit k of Present[i] is set if Components[k][i] takes
	// part.
	FitBefore, FitAfter []float64
	Components          [NumComponents][]float64
	Present             []uint8

	// FirstVictim has one more element than there are options.
	FirstVictim []int32
	Victims     Rows
	Shared      *Shared
}

// Len returns the number of options.
func (o *Options) Len() int { return len(o.Node) }

// Component identifies a part of a node's rank beside its fit.
type Component int

// The components, each in [-1, 1].
const (
	AntiAffinity Component = iota // other instances of the group on the node
	Affinity                      // weighted preferences
	Spread                        // balance over an attribute
	NumComponents
)

// Recheck holds the time at which an answer may change because time passes.
type Recheck struct{ at int64 }

// At requests another evaluation at a Unix time in nanoseconds. The earliest request
// wins.
func (r *Recheck) At(t int64) {
	if r.at == 0 || t < r.at {
		r.at = t
	}
}

// Time returns the earliest requested time, or 0 if there is none.
func (r *Recheck) Time() int64 { return r.at }

// VictimScores is the result of ScoreVictims: a tier and a score per row.
type VictimScores struct {
	Tier    []int64
	Score   []float64
	Recheck Recheck
}

// OptionScores is the result of ScoreOptions.
type OptionScores struct {
	Tiers   [4][]int64
	Score   []float64
	Recheck Recheck
}

// BindingVictims is the result of PreemptBindings.
type BindingVictims struct {
	Selection
	Tiers [4][]int64 // per option
}

// Selection is the result of SelectVictims.
type Selection struct {
	rows    []int32
	first   []int32
	Recheck Recheck
}

// Reset empties the selection and retains its memory. The host calls it.
func (s *Selection) Reset() {
	s.rows, s.first, s.Recheck = s.rows[:0], append(s.first[:0], 0), Recheck{}
}

// Pick adds a row (an index into Candidates.Rows) to the current option.
func (s *Selection) Pick(row int) { s.rows = append(s.rows, int32(row)) }

// Next closes the current option.
func (s *Selection) Next() { s.first = append(s.first, int32(len(s.rows))) }

// Len returns the number of closed options.
func (s *Selection) Len() int { return len(s.first) - 1 }

// Rows returns the picks of option i.
func (s *Selection) Rows(i int) []int32 { return s.rows[s.first[i]:s.first[i+1]] }
