package replication

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// A Kind is the number of a command in log entries. It is also the number of the
// command's field in the protobuf message, and never changes its meaning.
type Kind uint8

// The kinds of commands.
const (
	// Numbers are never reused, and gaps have no meaning.
	KindBootstrap           Kind = 10
	KindSetVersion          Kind = 11
	KindRegisterJob         Kind = 12
	KindStopJob             Kind = 13
	KindStopAllocs          Kind = 14
	KindWriteEvals          Kind = 15
	KindApplyPlans          Kind = 16
	KindRegisterNodes       Kind = 17
	KindChangeNodes         Kind = 18
	KindDeleteNodes         Kind = 19
	KindUpdateAllocs        Kind = 20
	KindSetConfig           Kind = 21
	KindUpsertPriorityClass Kind = 22
	KindDeletePriorityClass Kind = 23
	KindCollect             Kind = 24
	KindPutChunk            Kind = 25
	KindLoadPolicy          Kind = 26
	KindCheckPolicy         Kind = 27
	KindChangePolicy        Kind = 28
	KindPutToken            Kind = 29
	KindDeleteToken         Kind = 30
	KindUpsertBudget        Kind = 31
	KindDeleteBudget        Kind = 32
	KindUpsertClusters      Kind = 33
	KindUpsertBinding       Kind = 34
	KindDeleteBinding       Kind = 35
	KindEndAssignments      Kind = 36
	KindRestoreState        Kind = 37
	KindUpsertNamespace     Kind = 38
	KindDeleteNamespace     Kind = 39
	KindPutSigner           Kind = 40
	KindReportShadow        Kind = 41
	KindChangeClusters      Kind = 200
	KindDeleteCluster       Kind = 201
	KindStopBinding         Kind = 202
	KindUpdateAssignments   Kind = 50
	KindStopAssignments     Kind = 51
)

// commands lists every command once. Everything else about a command is a row of
// a Table in the package that does it: codec, fsm, and the server's event sink.
var commands = []struct {
	kind  Kind
	empty func() Command
}{
	{KindBootstrap, func() Command { return &Bootstrap{} }},
	{KindSetVersion, func() Command { return &SetVersion{} }},
	{KindRegisterJob, func() Command { return &RegisterJob{} }},
	{KindStopJob, func() Command { return &StopJob{} }},
	{KindStopAllocs, func() Command { return &StopAllocs{} }},
	{KindWriteEvals, func() Command { return &WriteEvals{} }},
	{KindApplyPlans, func() Command { return &ApplyPlans{} }},
	{KindRegisterNodes, func() Command { return &RegisterNodes{} }},
	{KindChangeNodes, func() Command { return &ChangeNodes{} }},
	{KindDeleteNodes, func() Command { return &DeleteNodes{} }},
	{KindUpdateAllocs, func() Command { return &UpdateAllocs{} }},
	{KindSetConfig, func() Command { return &SetConfig{} }},
	{KindUpsertPriorityClass, func() Command { return &UpsertPriorityClass{} }},
	{KindDeletePriorityClass, func() Command { return &DeletePriorityClass{} }},
	{KindUpsertNamespace, func() Command { return &UpsertNamespace{} }},
	{KindDeleteNamespace, func() Command { return &DeleteNamespace{} }},
	{KindCollect, func() Command { return &Collect{} }},
	{KindPutChunk, func() Command { return &PutChunk{} }},
	{KindRestoreState, func() Command { return &RestoreState{} }},
	{KindLoadPolicy, func() Command { return &LoadPolicy{} }},
	{KindCheckPolicy, func() Command { return &CheckPolicy{} }},
	{KindChangePolicy, func() Command { return &ChangePolicy{} }},
	{KindReportShadow, func() Command { return &ReportShadow{} }},
	{KindPutToken, func() Command { return &PutToken{} }},
	{KindDeleteToken, func() Command { return &DeleteToken{} }},
	{KindPutSigner, func() Command { return &PutSigner{} }},
	{KindUpsertBudget, func() Command { return &UpsertBudget{} }},
	{KindDeleteBudget, func() Command { return &DeleteBudget{} }},
	{KindUpsertClusters, func() Command { return &UpsertClusters{} }},
	{KindUpsertBinding, func() Command { return &UpsertBinding{} }},
	{KindDeleteBinding, func() Command { return &DeleteBinding{} }},
	{KindEndAssignments, func() Command { return &EndAssignments{} }},
	{KindChangeClusters, func() Command { return &ChangeClusters{} }},
	{KindDeleteCluster, func() Command { return &DeleteCluster{} }},
	{KindStopBinding, func() Command { return &StopBinding{} }},
	{KindUpdateAssignments, func() Command { return &UpdateAssignments{} }},
	{KindStopAssignments, func() Command { return &StopAssignments{} }},
}

// Kinds returns the kind of every command, in ascending order.
func Kinds() []Kind {
	kinds := make([]Kind, len(commands))
	for i, c := range commands {
		kinds[i] = c.kind
	}
	slices.Sort(kinds)
	return kinds
}

// New returns an empty command of this kind, or nil if the kind is unknown. It searches
// the list, which is short; decoding uses tables.
func (k Kind) New() Command {
	for _, c := range commands {
		if c.kind == k {
			return c.empty()
		}
	}
	return nil
}

// String returns the name of the command's type.
func (k Kind) String() string {
	if c := k.New(); c != nil {
		return reflect.TypeOf(c).Elem().Name()
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// KindOf returns the kind of a command.
func KindOf(c Command) Kind { return c.kind() }

// A Table is one column of the table of commands: a value for each kind. NewTable
// makes it complete, so that no package can omit a command.
type Table[T any] struct {
	rows  [1 << 8]T
	known [1 << 8]bool
}

// NewTable returns a table. It panics if a kind has no row, or if a row is of an
// unknown kind: a table is a package variable, so that a command without a row
// fails every test of that package. column names the table in the message.
func NewTable[T any](column string, rows map[Kind]T) *Table[T] {
	t := &Table[T]{}
	for _, k := range Kinds() {
		row, ok := rows[k]
		if !ok {
			panic(fmt.Sprintf("replication: command %s has no row in table %q", k, column))
		}
		t.rows[k], t.known[k] = row, true
	}
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if !t.known[k] {
			panic(fmt.Sprintf("replication: table %q has a row for %s, which is not a command", column, k))
		}
	}
	return t
}

// Lookup returns the row of a kind, and false if the kind is unknown.
func (t *Table[T]) Lookup(k Kind) (T, bool) { return t.rows[k], t.known[k] }

// Of returns the row of a command.
func (t *Table[T]) Of(c Command) T { return t.rows[c.kind()] }

func (*Bootstrap) kind() Kind           { return KindBootstrap }
func (*SetVersion) kind() Kind          { return KindSetVersion }
func (*RegisterJob) kind() Kind         { return KindRegisterJob }
func (*StopJob) kind() Kind             { return KindStopJob }
func (*StopAllocs) kind() Kind          { return KindStopAllocs }
func (*WriteEvals) kind() Kind          { return KindWriteEvals }
func (*ApplyPlans) kind() Kind          { return KindApplyPlans }
func (*RegisterNodes) kind() Kind       { return KindRegisterNodes }
func (*ChangeNodes) kind() Kind         { return KindChangeNodes }
func (*DeleteNodes) kind() Kind         { return KindDeleteNodes }
func (*UpdateAllocs) kind() Kind        { return KindUpdateAllocs }
func (*SetConfig) kind() Kind           { return KindSetConfig }
func (*UpsertPriorityClass) kind() Kind { return KindUpsertPriorityClass }
func (*DeletePriorityClass) kind() Kind { return KindDeletePriorityClass }
func (*UpsertNamespace) kind() Kind     { return KindUpsertNamespace }
func (*DeleteNamespace) kind() Kind     { return KindDeleteNamespace }
func (*Collect) kind() Kind             { return KindCollect }
func (*PutChunk) kind() Kind            { return KindPutChunk }
func (*RestoreState) kind() Kind        { return KindRestoreState }
func (*LoadPolicy) kind() Kind          { return KindLoadPolicy }
func (*CheckPolicy) kind() Kind         { return KindCheckPolicy }
func (*ChangePolicy) kind() Kind        { return KindChangePolicy }
func (*ReportShadow) kind() Kind        { return KindReportShadow }
func (*PutToken) kind() Kind            { return KindPutToken }
func (*DeleteToken) kind() Kind         { return KindDeleteToken }
func (*PutSigner) kind() Kind           { return KindPutSigner }
func (*UpsertBudget) kind() Kind        { return KindUpsertBudget }
func (*DeleteBudget) kind() Kind        { return KindDeleteBudget }
func (*UpsertClusters) kind() Kind      { return KindUpsertClusters }
func (*UpsertBinding) kind() Kind       { return KindUpsertBinding }
func (*DeleteBinding) kind() Kind       { return KindDeleteBinding }
func (*EndAssignments) kind() Kind      { return KindEndAssignments }
func (*ChangeClusters) kind() Kind      { return KindChangeClusters }
func (*DeleteCluster) kind() Kind       { return KindDeleteCluster }
func (*StopBinding) kind() Kind         { return KindStopBinding }
func (*UpdateAssignments) kind() Kind   { return KindUpdateAssignments }
func (*StopAssignments) kind() Kind     { return KindStopAssignments }
