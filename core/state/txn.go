package state

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// A Txn is a branch of the state that is being written. It reads like a snapshot.
// Each table is written through a value of its own, so that the parameters of a
// function show which tables it changes.
type Txn struct {
	branch
	store *Store // nil if it is a fork
}

// A branch holds the state that the writers of a transaction share, and the changes
// that its commit publishes.
type branch struct {
	View
	owner cow.Owner
	// nodeOwner owns the positions of nodes after NodeSnapshot; 0: owner does.
	nodeOwner cow.Owner
	records   bool // touched is recorded, since a watch of a single key exists
	restores  bool // values retain the indexes they are written with
	ended     bool
	tables    uint32 // bit set of the written Tables
	touched   []Key
}

// The writers. Each reads the whole state and writes one table, with the lists and
// counts of other tables that depend on it.
type (
	// An AllocWriter writes allocations, and with them the capacity of their nodes
	// and the counts of their budgets.
	AllocWriter struct{ *branch }
	// An AssignmentWriter writes assignments, and with them the capacity of their
	// clusters.
	AssignmentWriter struct{ *branch }
	// An AuditWriter writes the records of changes by operators.
	AuditWriter struct{ *branch }
	// A BindingWriter writes bindings.
	BindingWriter struct{ *branch }
	// A BudgetWriter writes disruption budgets and their counts.
	BudgetWriter struct{ *branch }
	// A ClaimWriter writes claims, and with them the capacity of their nodes or
	// clusters.
	ClaimWriter struct{ *branch }
	// A ClusterWriter writes member clusters.
	ClusterWriter struct{ *branch }
	// A ConfigWriter writes the scheduler configuration and the identity of the
	// cluster.
	ConfigWriter struct{ *branch }
	// An EvalWriter writes evaluations.
	EvalWriter struct{ *branch }
	// An IdempotencyWriter writes the results of requests with an idempotency key.
	IdempotencyWriter struct{ *branch }
	// A JobWriter writes jobs, and the marks and holds of the keys of jobs and
	// bindings.
	JobWriter struct{ *branch }
	// A NamespaceWriter writes namespaces.
	NamespaceWriter struct{ *branch }
	// A NodeWriter writes nodes.
	NodeWriter struct{ *branch }
	// A PolicyWriter writes the versions of policies and their roles.
	PolicyWriter struct{ *branch }
	// A PriorityClassWriter writes priority classes.
	PriorityClassWriter struct{ *branch }
	// A SignerWriter writes the keys of servers that sign certificates.
	SignerWriter struct{ *branch }
	// A TokenWriter writes tokens.
	TokenWriter struct{ *branch }
	// An UploadWriter writes incomplete uploads of policy modules.
	UploadWriter struct{ *branch }
)

// AllocWriter returns the writer of allocations.
func (t *Txn) AllocWriter() AllocWriter { return AllocWriter{&t.branch} }

// AssignmentWriter returns the writer of assignments.
func (t *Txn) AssignmentWriter() AssignmentWriter { return AssignmentWriter{&t.branch} }

// AuditWriter returns the writer of audit records.
func (t *Txn) AuditWriter() AuditWriter { return AuditWriter{&t.branch} }

// BindingWriter returns the writer of bindings.
func (t *Txn) BindingWriter() BindingWriter { return BindingWriter{&t.branch} }

// BudgetWriter returns the writer of disruption budgets.
func (t *Txn) BudgetWriter() BudgetWriter { return BudgetWriter{&t.branch} }

// ClaimWriter returns the writer of claims.
func (t *Txn) ClaimWriter() ClaimWriter { return ClaimWriter{&t.branch} }

// ClusterWriter returns the writer of member clusters.
func (t *Txn) ClusterWriter() ClusterWriter { return ClusterWriter{&t.branch} }

// ConfigWriter returns the writer of the configuration.
func (t *Txn) ConfigWriter() ConfigWriter { return ConfigWriter{&t.branch} }

// EvalWriter returns the writer of evaluations.
func (t *Txn) EvalWriter() EvalWriter { return EvalWriter{&t.branch} }

// IdempotencyWriter returns the writer of idempotency records.
func (t *Txn) IdempotencyWriter() IdempotencyWriter { return IdempotencyWriter{&t.branch} }

// JobWriter returns the writer of jobs.
func (t *Txn) JobWriter() JobWriter { return JobWriter{&t.branch} }

// NamespaceWriter returns the writer of namespaces.
func (t *Txn) NamespaceWriter() NamespaceWriter { return NamespaceWriter{&t.branch} }

// NodeWriter returns the writer of nodes.
func (t *Txn) NodeWriter() NodeWriter { return NodeWriter{&t.branch} }

// PolicyWriter returns the writer of policies.
func (t *Txn) PolicyWriter() PolicyWriter { return PolicyWriter{&t.branch} }

// PriorityClassWriter returns the writer of priority classes.
func (t *Txn) PriorityClassWriter() PriorityClassWriter { return PriorityClassWriter{&t.branch} }

// SignerWriter returns the writer of signers.
func (t *Txn) SignerWriter() SignerWriter { return SignerWriter{&t.branch} }

// TokenWriter returns the writer of tokens.
func (t *Txn) TokenWriter() TokenWriter { return TokenWriter{&t.branch} }

// UploadWriter returns the writer of uploads.
func (t *Txn) UploadWriter() UploadWriter { return UploadWriter{&t.branch} }

// Fork branches the snapshot. The branch reads and writes like a transaction at the
// given index and is never published.
func (sn *Snapshot) Fork(index uint64) *Txn {
	if index < sn.index {
		panic(fmt.Sprintf("state: fork at index %d of %d", index, sn.index))
	}
	return &Txn{branch: branch{View: sn.at(index), owner: cow.NewOwner()}}
}

// Snapshot returns the current state of the branch; more writes may follow.
func (t *Txn) Snapshot() *Snapshot {
	// From here on, the snapshot shares the blocks that the branch owned.
	t.owner, t.nodeOwner = cow.NewOwner(), 0
	return &Snapshot{View: t.View}
}

// Draft returns the current state of the branch for callers that alternate between
// writes and reads. It costs no later copies, but it is invalid after the next
// write.
func (t *Txn) Draft() *Snapshot { return &Snapshot{View: t.View} }

// NodeSnapshot is Draft for callers that retain chunks: those of the result never change. Later
// writes have the next index and copy the chunks of their nodes, but nothing else.
func (t *Txn) NodeSnapshot() *Snapshot {
	sn := t.Draft()
	t.View, t.nodeOwner = t.at(t.index+1), cow.NewOwner()
	return sn
}

// Commit publishes the transaction and closes the watches of what it wrote. It
// panics if the transaction is a fork or has ended.
func (t *Txn) Commit() *Snapshot {
	if t.store == nil {
		panic("state: a fork cannot be committed")
	}
	t.end()
	sn := &Snapshot{View: t.View}
	t.store.current.Store(sn)
	t.store.writer.Unlock()
	t.store.hub.notify(t)
	return sn
}

// Abort drops the transaction. It does nothing after Commit, so that it can be
// deferred.
func (t *Txn) Abort() {
	if t.ended || t.store == nil {
		return
	}
	t.end()
	t.store.writer.Unlock()
}

func (t *Txn) end() {
	if t.ended {
		panic("state: transaction has ended")
	}
	t.ended = true
	t.owner = 0
}

// touch records a written key for the watches.
func (t *branch) touch(k Key) {
	if t.ended {
		panic("state: write to a transaction that has ended")
	}
	t.tables |= 1 << k.Table
	if t.records {
		t.touched = append(t.touched, k)
	}
}

// GrowDimensions adds resource names in the given order. A restore calls it first,
// because vectors have no meaning without that order.
func (t *Txn) GrowDimensions(names ...string) error {
	for _, name := range names {
		if err := t.RequireDimensions(model.Resources{name: 0}); err != nil {
			return err
		}
	}
	return nil
}

// requireDimensions adds the resource names of rs that are missing. It returns
// model.ErrTooManyDimensions without a change if there would be too many. New
// names appear at most a dozen times in the life of a cluster, so every chunk is
// widened at once.
func (t *branch) RequireDimensions(rs ...model.Resources) error {
	dims, err := t.dims.With(rs...)
	if err != nil || dims == t.dims {
		return err
	}
	t.dims = dims
	for i := range t.chunks {
		t.ownChunk(t.owner, i).widen(dims.Len())
	}
	return nil
}

// stamp sets the indexes of a value that is being written. created is the index at
// which it was first written, or 0 if that is now.
func (t *branch) stamp(create, modify *uint64, created uint64) {
	if t.restores {
		return
	}
	*modify = t.index
	*create = t.index
	if created != 0 {
		*create = created
	}
}
