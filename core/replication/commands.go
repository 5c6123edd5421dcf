package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The commands. What one refuses is a *Refusal in its Result, and leaves no
// trace in the state.
type (
	// Bootstrap names the cluster; it does nothing to one that has a name.
	Bootstrap struct {
		ClusterID string
		Version   uint32   // of the meaning of entries
		Key       [32]byte // by chance; see state.Meta
	}
	// SetVersion raises the version of the meaning of entries.
	SetVersion struct{ Version uint32 }

	// RegisterJob stores a job, or another version of it, with an evaluation.
	RegisterJob struct {
		Job  *model.Job
		Eval *model.Evaluation // nil: none
		// Check is the ModifyIndex that the job must have; 0: it must not be there;
		// nil: whatever it has.
		Check *uint64
		// Batch is what a plan of this job decided, written with the job or not at
		// all: one place that is gone, one victim that is no longer there to be
		// evicted, and the command is refused. Its allocations of this job are of
		// the version that the command registers. What such a plan leaves without a place
		// (Eval is not complete) takes free room alone: see state.View.Held.
		Batch *apply.Batch
		// Rules is the index up to which whoever confirmed Batch knew by which rules its
		// victims were chosen: after a later change of policies or of the configuration
		// the command is refused. 0: nothing was chosen.
		Rules uint64
	}
	// StopJob stops a job; with Purge the job is forgotten at once. The evaluation
	// ends what runs of it.
	StopJob struct {
		Key   model.JobKey
		Purge bool
		Eval  *model.Evaluation // nil: none
		Check *uint64           // as of RegisterJob
	}
	// StopAllocs ends allocations, with an evaluation for each job.
	StopAllocs struct {
		IDs    []string
		Reason string
	}

	// WriteEvals stores evaluations, or other versions of them.
	WriteEvals struct{ Evals []*model.Evaluation }
	// ApplyPlans writes what the planner accepted.
	ApplyPlans struct{ Batch *apply.Batch }

	// RegisterNodes stores nodes, or other versions of them. Whether a node that
	// is there drains or is ineligible stays as it is; another secret is a
	// conflict.
	RegisterNodes struct{ Nodes []*model.Node }
	// ChangeNodes changes the status of nodes.
	ChangeNodes struct {
		IDs    []string
		Change apply.NodeChange
	}
	// DeleteNodes forgets nodes.
	DeleteNodes struct{ IDs []string }
	// UpdateAllocs writes what nodes report.
	UpdateAllocs struct{ Updates []apply.ClientUpdate }

	// SetConfig replaces what operators set.
	SetConfig struct {
		Config *model.SchedulerConfig
		Check  *uint64 // the ModifyIndex that the configuration must have; nil: any
	}
	// UpsertPriorityClass stores a priority class.
	UpsertPriorityClass struct{ Class *model.PriorityClass }
	// DeletePriorityClass forgets one.
	DeletePriorityClass struct{ Name string }

	// UpsertBudget stores a disruption budget.
	UpsertBudget struct{ Budget *model.Budget }
	// DeleteBudget forgets one.
	DeleteBudget struct{ Key model.BudgetKey }

	// UpsertClusters stores member clusters, or other versions of them. One that
	// comes without a secret is an operator's: the secret that there is stays, and
	// what was reported. Another secret is a conflict.
	UpsertClusters struct{ Clusters []*model.Cluster }
	// ChangeClusters writes what is learnt of member clusters; those that are not
	// there are skipped.
	ChangeClusters struct{ Changes []model.ClusterChange }
	// DeleteCluster forgets a member cluster. While assignments hold room there it
	// is a conflict, unless it is forced: they are forgotten then, and what they
	// were is placed elsewhere.
	DeleteCluster struct {
		ID    string
		Force bool
	}
	// UpsertBinding stores a binding, or another version of it, with an
	// evaluation.
	UpsertBinding struct {
		Binding *model.Binding
		Eval    *model.Evaluation // nil: none
		Check   *uint64           // as of RegisterJob
	}
	// StopBinding stops a binding; the evaluation ends what is assigned of it.
	StopBinding struct {
		Key   model.JobKey
		Eval  *model.Evaluation // nil: none
		Check *uint64           // as of RegisterJob
	}
	// DeleteBinding forgets a binding that holds nothing any more.
	DeleteBinding struct{ Key model.JobKey }
	// EndAssignments writes that assignments are gone, or have done their work.
	EndAssignments struct{ IDs []string }
	// UpdateAssignments writes what member clusters report of assignments.
	UpdateAssignments struct{ Updates []apply.AssignmentUpdate }
	// StopAssignments withdraws assignments, with an evaluation for each binding.
	StopAssignments struct {
		IDs    []string
		Reason string
	}

	// Collect forgets what is over. What is not, or plays a role, is left out; ids
	// that are not there are skipped. A job goes with all of its allocations and
	// evaluations.
	Collect struct {
		Evals, Allocs   []string
		Jobs            []model.JobKey
		Nodes, Policies []string
	}

	// PutChunk adds to a module that is on its way. Chunks come in order; one that
	// came before is skipped.
	PutChunk struct {
		Digest string // sha256:..., of the whole module
		Offset int64
		Data   []byte // at most MaxChunk
	}
	// LoadPolicy makes a version known whose module has arrived.
	LoadPolicy struct{ Version *model.PolicyVersion }
	// CheckPolicy notes what a server found when it tried a version.
	CheckPolicy struct {
		Version, Server string
		Check           model.PolicyCheck
	}
	// ChangePolicy changes the role of a version.
	ChangePolicy struct {
		Name    string
		Op      PolicyOp
		Version string // version id; "" where the operation needs none
		Reason  string // of OpTrip
		// Until goes into PolicyState.Until by OpActivate; every other operation that
		// changes Active makes it 0. OpRollback with Until does nothing unless the
		// state has the same one: whoever confirms a trial as it ends has the last word.
		Until int64
		Force bool // OpUnload: also what is active, previous or shadow
	}

	// PutToken stores a token.
	PutToken struct {
		Token     *model.Token
		Bootstrap bool // refused when there is any token
	}
	// DeleteToken forgets one.
	DeleteToken struct{ Accessor string }
)
