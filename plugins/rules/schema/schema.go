package schema

import "github.com/cede-scheduler/cede/sdk/policy"

// Type is the type of a value.
type Type uint8

// The types. Duration and Timestamp are nanoseconds.
const (
	Bool Type = iota + 1
	Int
	Double
	String
	Duration
	Timestamp
)

var typeNames = [...]string{Bool: "bool", Int: "int", Double: "double", String: "string", Duration: "duration", Timestamp: "timestamp"}

func (t Type) String() string { return typeNames[t] }

// IsWhole reports whether a value is computed as a whole number.
func (t Type) IsWhole() bool { return t == Int || t == Duration || t == Timestamp }

// Scope is the set of rules that may use a name, as bits.
type Scope uint8

// The scopes.
const (
	Eligible Scope = 1 << iota
	Order
	Option

	Victims = Eligible | Order // rules about one candidate
	All     = Victims | Option
)

// Element selects the element of a column.
type Element uint8

// The elements.
const (
	First     Element = iota // the column has one element
	PerRow                   // one per candidate
	PerOption                // one per option
)

// Limits of texts that rules read.
const (
	// MaxText is the length of a text in bytes. The last bytes of a longer name count, and a
	// label with a longer value counts as absent.
	MaxText = 256
	// MaxLabels is the number of labels of an element, by ascending key, that count.
	MaxLabels = 511
)

// Form is the form of an element in memory.
type Form uint8

// The forms. An ID is the number of a text in the table of texts, a NameID of one whose
// part behind the last zero byte is the value; Packed is a text as address and length.
const (
	I32 Form = iota + 1
	I64
	F64
	U8
	ID
	NameID
	Packed
)

// Size returns the size of an element in bytes.
func (f Form) Size() int {
	switch f {
	case U8:
		return 1
	case I32, ID, NameID:
		return 4
	}
	return 8
}

// A Field is a name with a value.
type Field struct {
	Name    string
	Type    Type
	Scope   Scope
	Columns policy.Columns
	Element Element
	Form    Form
	Doc     string
}

// Fields lists the fields. Their order is that of runtime.c.
var Fields = []Field{
	{"preemptor.priority", Int, All, 0, First, I32, "priority of the preemptor"},
	{"preemptor.delta", Int, All, 0, First, I32, "priority gap that the operator requires, or `delta` of the rules"},
	{"preemptor.ports", Int, All, 0, First, I32, "number of host ports that it needs"},
	{"preemptor.attempts", Int, All, 0, First, I32, "evaluations so far that did not place all of its job"},
	{"preemptor.waiting", Duration, All, 0, First, I64, "time for which it has been pending"},
	{"preemptor.namespace", String, All, 0, First, Packed, "its namespace"},
	{"preemptor.job", String, All, 0, First, Packed, "its job"},
	{"preemptor.group", String, All, 0, First, Packed, "its task group"},
	{"preemptor.jobType", String, All, 0, First, Packed, "`service`, `batch`, `system` or `sysbatch`"},
	{"victim.priority", Int, Victims, 0, PerRow, I32, "priority of the candidate"},
	{"victim.start", Timestamp, Victims, policy.StartColumn, PerRow, I64, "time at which it started"},
	{"victim.lostWork", Duration, Victims, policy.LostWorkColumn, PerRow, I64, "work that is lost if it is evicted now: its time since the last checkpoint"},
	{"victim.namespace", String, Victims, policy.JobColumns, PerRow, ID, "its namespace"},
	{"victim.job", String, Victims, policy.JobColumns, PerRow, NameID, "its job"},
	{"victim.group", String, Victims, policy.JobColumns, PerRow, NameID, "its task group"},
	{"victim.evictions", Int, Victims, policy.EvictionColumns, PerRow, I32, "victims of its group in the plan so far"},
	{"victim.evictionLimit", Int, Victims, policy.EvictionColumns, PerRow, I32, "number of victims per plan above which its group should be spared; 0: unlimited"},
	{"victim.mustLeave", Bool, Victims, policy.MustLeaveColumn, PerRow, U8, "it holds a port that the preemptor needs, or may not run beside it"},
	{"victim.share", Double, Victims, policy.UseColumns | policy.TotalsColumn, PerRow, F64, "its share of the cluster: the mean over all resources"},
	{"victim.budgetSlack", Int, Victims, policy.BudgetColumns, PerRow, I32, "evictions that the tightest of its disruption budgets still allows; 2147483647 if it has none"},
	{"victim.namespaceShare", Double, Victims, policy.JobColumns | policy.SharedTables, PerRow, F64, "largest share of a resource of the cluster that its namespace uses, divided by the weight of the namespace"},
	{"victim.relocation", Int, Order, policy.RelocationColumns, PerRow, U8, "where it could run if it were evicted: 0 on another node at once, 1 there once others have left, 2 nowhere else"},
	{"victim.displacedPriority", Int, Order, policy.RelocationColumns, PerRow, I32, "highest priority that it would evict there; -2147483648 unless `relocation` is 1"},
	{"victim.displacedLostWork", Duration, Order, policy.RelocationColumns, PerRow, I64, "work that this would lose; 0 unless `relocation` is 1"},
	{"node.name", String, All, policy.PlaceColumn, PerOption, ID, "name of the node"},
	{"option.highestPriority", Int, Option, 0, PerOption, I32, "highest priority of the victims; -2147483648 if there are none"},
	{"option.victims", Int, Option, 0, PerOption, I32, "number of victims"},
	{"option.prioritySum", Int, Option, 0, PerOption, I64, "sum of the victims' priorities"},
	{"option.lostWork", Duration, Option, policy.LostWorkColumn, PerOption, I64, "lost work of all victims"},
	{"option.start", Timestamp, Option, policy.StartColumn, PerOption, I64, "earliest start of the victims with the highest priority"},
	{"option.budgetViolations", Int, Option, policy.BudgetColumns, PerOption, I32, "victims whose eviction overruns a disruption budget"},
	{"option.stranded", Int, Option, policy.RelocationColumns, PerOption, I32, "victims that could run nowhere else"},
	{"option.displacing", Int, Option, policy.RelocationColumns, PerOption, I32, "victims that could run elsewhere only by evicting others"},
	{"option.displacedPriority", Int, Option, policy.RelocationColumns, PerOption, I32, "highest priority that these would evict; -2147483648 if there are none"},
	{"option.displacedLostWork", Duration, Option, policy.RelocationColumns, PerOption, I64, "work that this would lose"},
	{"option.expectedLostWork", Duration, Option, policy.LookAheadColumns, PerOption, I64, "lost work of all evictions that follow within ten minutes, those of the option included; 0 if it was not played"},
	{"option.cascadeDepth", Int, Option, policy.LookAheadColumns, PerOption, I32, "length of the longest chain of these evictions: 1 if no victim evicts in its turn; 0 if it was not played"},
	{"option.expectedDelay", Duration, Option, policy.LookAheadColumns, PerOption, I64, "time for which evicted instances do not run, summed over them; 0 if it was not played"},
	{"option.fitBefore", Double, Option, policy.FitColumns, PerOption, F64, "rank of the node with the victims, from 0 to 1"},
	{"option.fitAfter", Double, Option, policy.FitColumns, PerOption, F64, "rank of the node without the victims, from 0 to 1"},
	{"option.rank", Double, Option, policy.FitColumns, PerOption, F64, "mean of `fitAfter` and of the next three that are present; higher is better"},
	{"option.antiAffinity", Double, Option, policy.FitColumns, PerOption, F64, "other instances of the group on the node, from -1 to 1; 0 if it takes no part"},
	{"option.affinity", Double, Option, policy.FitColumns, PerOption, F64, "weighted preferences, from -1 to 1; 0 if they take no part"},
	{"option.spread", Double, Option, policy.FitColumns, PerOption, F64, "balance over an attribute, from -1 to 1; 0 if it takes no part"},
}

// A Map is a name with a value for each key: NAME['KEY'], or NAME.KEY if the key is an
// identifier.
type Map struct {
	Field
	// Optional reports whether a key may be absent. Otherwise the value of an unknown key
	// is 0.
	Optional bool
}

// Maps lists the maps. Their order is that of runtime.c.
var Maps = []Map{
	{Field{"preemptor.ask", Double, All, 0, First, F64, "requested amount of a resource"}, false},
	{Field{"preemptor.labels", String, All, policy.LabelColumns, First, Packed, "its labels"}, true},
	{Field{"preemptor.annotations", Double, All, policy.AnnotationColumns, First, F64, "its numeric annotations"}, true},
	{Field{"victim.use", Double, Victims, policy.UseColumns, PerRow, F64, "amount of a resource that the candidate uses"}, false},
	{Field{"victim.labels", String, Victims, policy.LabelColumns, PerRow, Packed, "its labels"}, true},
	{Field{"victim.annotations", Double, Victims, policy.AnnotationColumns, PerRow, F64, "its numeric annotations"}, true},
	{Field{"node.capacity", Double, Victims, policy.CapacityColumns, PerOption, F64, "capacity of the node"}, false},
	{Field{"node.reserved", Double, Victims, policy.CapacityColumns, PerOption, F64, "capacity that is not for jobs"}, false},
	{Field{"node.free", Double, Victims, policy.CapacityColumns, PerOption, F64, "free capacity"}, false},
	{Field{"node.own", Double, Victims, policy.CapacityColumns, PerOption, F64, "use of the preemptor's own job on the node"}, false},
	{Field{"option.need", Double, Victims, 0, PerOption, F64, "amount that is still missing; zero or less if nothing is"}, false},
	{Field{"option.freed", Double, Victims, 0, PerOption, F64, "amount that earlier victims free"}, false},
	{Field{"cluster.capacity", Double, All, policy.TotalsColumn, First, F64, "capacity of all ready nodes"}, false},
}

// A Span is a name for the time since another: now - Of.
type Span struct {
	Name string
	Of   string
	Doc  string
}

// Now is the name of the current time.
const Now = "now"

// Spans lists the ages.
var Spans = []Span{
	{"victim.age", "victim.start", "time for which the candidate has run"},
	{"option.age", "option.start", "longest time for which a victim with the highest priority has run"},
}

// Lookup returns the index in Fields of a name, or -1.
func Lookup(name string) int {
	for i := range Fields {
		if Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// LookupMap returns the index in Maps of a name, or -1.
func LookupMap(name string) int {
	for i := range Maps {
		if Maps[i].Name == name {
			return i
		}
	}
	return -1
}
