package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The commands.
type (
	// Bootstrap names the cluster. It has no effect on a cluster that has a name.
	Bootstrap struct {
		ClusterID string
		Version   uint32   // of the log
		Key       [32]byte // random; see state.Meta
	}
	// SetVersion raises the cluster's version of the log.
	SetVersion struct{ Version uint32 }

	// RegisterJob stores a job, or a new version of it, with an evaluation.
	RegisterJob struct {
		Job  *model.Job
		Eval *model.Evaluation // nil: none
		// Check is the ModifyIndex that the job must have. 0: the job must not exist;
		// nil: any.
		Check *uint64
		// Batch is a confirmed plan of this job. It is written together with the job or
		// not at all: if a node or a victim is gone, the command is refused. Its
		// allocations of this job are of the version that the command registers. The
		// part that the plan does not place (Eval is not complete) waits for free capacity: see
		// state.View.PreemptionHold. nil: none.
		Batch *apply.Batch
		// Rules is the index of the policies and the configuration that chose the
		// victims of Batch. If they changed later, the command is refused. 0: Batch has
		// no victims.
		Rules uint64
	}
	// StopJob stops a job, or deletes it at once with Purge. The evaluation stops its
	// allocations.
	StopJob struct {
		Key   model.JobKey
		Purge bool
		Eval  *model.Evaluation // nil: none
		Check *uint64           // as in RegisterJob
	}
	// StopAllocs stops allocations, and derives an evaluation for each job.
	StopAllocs struct {
		IDs    []string
		Reason string
	}

	// WriteEvals stores evaluations, or new versions of them.
	WriteEvals struct{ Evals []*model.Evaluation }
	// ApplyPlans writes the commit groups that the planner accepted.
	ApplyPlans struct{ Batch *apply.Batch }

	// RegisterNodes stores nodes, or new versions of them. Drain, eligibility and
	// operators' taints of an existing node are retained. A node with another secret
	// is a conflict.
	RegisterNodes struct{ Nodes []*model.Node }
	// ChangeNodes changes the status of nodes.
	ChangeNodes struct {
		IDs    []string
		Change apply.NodeChange
	}
	// DeleteNodes deletes nodes.
	DeleteNodes struct{ IDs []string }
	// UpdateAllocs applies the reports of nodes about allocations.
	UpdateAllocs struct{ Updates []apply.ClientUpdate }

	// SetConfig replaces the scheduler configuration.
	SetConfig struct {
		Config *model.SchedulerConfig
		Check  *uint64 // the ModifyIndex that the configuration must have; nil: any
	}
	// UpsertPriorityClass stores a priority class.
	UpsertPriorityClass struct{ Class *model.PriorityClass }
	// DeletePriorityClass deletes a priority class.
	DeletePriorityClass struct{ Name string }

	// UpsertNamespace stores a namespace. A weight of 0 retains that of the stored one;
	// that of a new namespace is model.DefaultWeight.
	UpsertNamespace struct {
		Namespace *model.Namespace
		Check     *uint64 // the ModifyIndex that it must have; 0: it must not be stored; nil: any
	}
	// DeleteNamespace deletes a namespace that contains nothing.
	DeleteNamespace struct {
		Name  string
		Check *uint64 // the ModifyIndex that it must have; nil: any
	}

	// UpsertBudget stores a disruption budget.
	UpsertBudget struct{ Budget *model.Budget }
	// DeleteBudget deletes a disruption budget.
	DeleteBudget struct{ Key model.BudgetKey }

	// UpsertClusters stores member clusters, or new versions of them. One without a
	// secret comes from an operator: the stored secret and report are retained. A
	// cluster with another secret is a conflict.
	UpsertClusters struct{ Clusters []*model.Cluster }
	// ChangeClusters applies changes of member clusters. Unknown clusters
	// are skipped.
	ChangeClusters struct{ Changes []model.ClusterChange }
	// DeleteCluster deletes a member cluster. If assignments hold capacity there, it is
	// a conflict unless Force is set: then they are deleted, and their bindings are
	// evaluated again.
	DeleteCluster struct {
		ID    string
		Force bool
	}
	// UpsertBinding stores a binding, or a new version of it, with an evaluation.
	UpsertBinding struct {
		Binding *model.Binding
		Eval    *model.Evaluation // nil: none
		Check   *uint64           // as in RegisterJob
	}
	// StopBinding stops a binding. The evaluation withdraws its assignments.
	StopBinding struct {
		Key   model.JobKey
		Eval  *model.Evaluation // nil: none
		Check *uint64           // as in RegisterJob
	}
	// DeleteBinding deletes a binding that holds no capacity.
	DeleteBinding struct{ Key model.JobKey }
	// EndAssignments records that assignments are gone or complete.
	EndAssignments struct{ IDs []string }
	// UpdateAssignments applies the reports of member clusters about assignments.
	UpdateAssignments struct{ Updates []apply.AssignmentUpdate }
	// StopAssignments withdraws assignments, and derives an evaluation for each binding.
	StopAssignments struct {
		IDs    []string
		Reason string
	}

	// Collect deletes rows that have ended. Rows that have not ended or are in use are
	// skipped, and so are unknown IDs. A job is deleted with its allocations and evaluations.
	Collect struct {
		Evals, Allocs   []string
		Jobs            []model.JobKey
		Nodes, Policies []string
	}

	// PutChunk appends to the upload of a module, or of a snapshot to restore. Chunks are
	// in order; a repeated chunk has no effect.
	PutChunk struct {
		Digest string // sha256:..., of the whole module; snapshot:..., of a whole snapshot
		Offset int64
		Data   []byte // at most MaxChunk
	}
	// RestoreState replaces the state by a snapshot that was uploaded. Entries before it
	// are replaced, and those after it apply to the restored state.
	RestoreState struct{ Digest string }
	// LoadPolicy stores a policy version after its module was uploaded.
	LoadPolicy struct{ Version *model.PolicyVersion }
	// CheckPolicy records the result of a server's test of a version.
	CheckPolicy struct {
		Version, Server string
		Check           model.PolicyCheck
	}
	// ReportShadow adds the comparisons of one server to the sums of a shadow run.
	ReportShadow struct {
		Version string // of the shadow
		Sums    model.ShadowSums
	}
	// ChangePolicy changes the role of a policy version.
	ChangePolicy struct {
		Name    string
		Op      PolicyOp
		Version string // version ID; "" if the operation needs none
		Reason  string // of OpTrip, and of the verdict of a trial
		// Until is the end of a trial, stored by OpActivate; other operations that change
		// the active version reset it. OpRollback with Until is refused unless the stored
		// end is the same: a confirmation that comes just before the end prevails. For
		// OpTrial it is the end of the trial, and for OpBlock the end of the block.
		Until int64
		Force bool // OpUnload: even if the version is active, previous or shadow
		// Actor identifies the source of the request: the accessor of a token,
		// model.TrialActor, or "" if it is unknown.
		Actor string
		Trial *model.TrialPlan // of OpTrial
	}

	// PutToken stores a token.
	PutToken struct {
		Token     *model.Token
		Bootstrap bool // refused if any token exists
	}
	// DeleteToken deletes a token.
	DeleteToken struct{ Accessor string }
	// PutSigner stores the key with which a server signs certificates of decisions.
	PutSigner struct{ Signer *model.Signer }
)
