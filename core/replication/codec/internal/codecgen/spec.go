package main

import (
	"reflect"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A pair is a Go type and the message that it is converted to and from. Types are
// matched by their field names, without underscores and case.
type pair struct{ value, message reflect.Type }

func of[V, M any]() pair { return pair{reflect.TypeFor[V](), reflect.TypeFor[M]()} }

// pairs lists every conversion that is generated. Those that are not plain field
// by field (plans, batches) are in plan.go.
var pairs = []pair{
	of[model.JobKey, pb.JobKey](),
	of[model.Job, pb.Job](),
	of[model.PreemptionToleration, pb.PreemptionToleration](),
	of[model.Group, pb.Group](),
	of[model.Disconnect, pb.Disconnect](),
	of[model.Task, pb.Task](),
	of[model.Toleration, pb.Toleration](),
	of[model.DeviceRequest, pb.DeviceRequest](),
	of[model.Constraint, pb.Constraint](),
	of[model.Affinity, pb.Affinity](),
	of[model.Spread, pb.Spread](),
	of[model.LabelTerm, pb.LabelTerm](),

	of[model.Node, pb.Node](),
	of[model.Taint, pb.Taint](),
	of[model.Device, pb.Device](),

	of[model.Evaluation, pb.Evaluation](),
	of[model.Observation, pb.Observation](),
	of[model.Explanation, pb.Explanation](),
	of[model.NodeReason, pb.NodeReason](),

	of[model.Allocation, pb.Allocation](),
	of[model.DeviceUse, pb.DeviceUse](),
	of[model.Stop, pb.Stop](),
	of[model.Eviction, pb.Eviction](),
	of[model.Claim, pb.Claim](),
	of[apply.ClientUpdate, pb.ClientUpdate](),

	of[model.Cluster, pb.Cluster](),
	of[model.ClusterChange, pb.ClusterChange](),
	of[model.Binding, pb.Binding](),
	of[model.Assignment, pb.Assignment](),
	of[model.Withdrawal, pb.Withdrawal](),
	of[apply.AssignmentUpdate, pb.AssignmentUpdate](),

	of[model.SchedulerConfig, pb.SchedulerConfig](),
	of[model.PriorityClass, pb.PriorityClass](),
	of[model.Namespace, pb.Namespace](),
	of[model.Budget, pb.Budget](),
	of[model.Bound, pb.Bound](),
	of[model.Rate, pb.Rate](),
	of[model.EvictionCount, pb.EvictionsAt](),
	of[model.Token, pb.Token](),
	of[model.Signer, pb.Signer](),
	of[model.AuditRecord, pb.AuditRecord](),

	of[model.PolicyVersion, pb.PolicyVersion](),
	of[model.PolicyLimits, pb.PolicyLimits](),
	of[model.PolicyCheck, pb.PolicyCheck](),
	of[model.PolicyState, pb.PolicyState](),
	of[model.Trial, pb.Trial](),
	of[model.PolicyTrial, pb.PolicyTrial](),
	of[model.TrialPlan, pb.TrialPlan](),
	of[model.TrialBlock, pb.TrialBlock](),
	of[model.PolicySums, pb.PolicySums](),
	of[model.ShadowSums, pb.ShadowSums](),

	of[replication.Bootstrap, pb.Bootstrap](),
	of[replication.SetVersion, pb.SetVersion](),
	of[replication.RegisterJob, pb.RegisterJob](),
	of[replication.StopJob, pb.StopJob](),
	of[replication.StopAllocs, pb.StopAllocs](),
	of[replication.WriteEvals, pb.WriteEvals](),
	of[replication.RegisterNodes, pb.RegisterNodes](),
	of[replication.ChangeNodes, pb.ChangeNodes](),
	of[replication.DeleteNodes, pb.DeleteNodes](),
	of[replication.UpdateAllocs, pb.UpdateAllocs](),
	of[replication.SetConfig, pb.SetConfig](),
	of[replication.DeletePriorityClass, pb.DeletePriorityClass](),
	of[replication.UpsertNamespace, pb.UpsertNamespace](),
	of[replication.DeleteNamespace, pb.DeleteNamespace](),
	of[replication.DeleteBudget, pb.DeleteBudget](),
	of[replication.UpsertClusters, pb.UpsertClusters](),
	of[replication.ChangeClusters, pb.ChangeClusters](),
	of[replication.DeleteCluster, pb.DeleteCluster](),
	of[replication.UpsertBinding, pb.UpsertBinding](),
	of[replication.StopBinding, pb.StopBinding](),
	of[replication.DeleteBinding, pb.DeleteBinding](),
	of[replication.EndAssignments, pb.EndAssignments](),
	of[replication.UpdateAssignments, pb.UpdateAssignments](),
	of[replication.StopAssignments, pb.StopAssignments](),
	of[replication.Collect, pb.Collect](),
	of[replication.PutChunk, pb.PutChunk](),
	of[replication.RestoreState, pb.RestoreState](),
	of[replication.CheckPolicy, pb.CheckPolicy](),
	of[replication.ReportShadow, pb.ReportShadow](),
	of[replication.ChangePolicy, pb.ChangePolicy](),
	of[replication.PutToken, pb.PutToken](),
	of[replication.DeleteToken, pb.DeleteToken](),
	of[replication.PutSigner, pb.PutSigner](),
}

// renamed maps fields of Go types to those of messages where the names differ. A
// message's field keeps its name: a new name would only change generated code, and the
// Go field's name may improve.
var renamed = map[string]string{
	"Toleration.For":       "Stay",
	"Job.AllOrNone":        "EvictedWhole",
	"Withdrawal.Remaining": "Keep",
}

// inlined lists struct fields whose own fields are fields of the message.
var inlined = []string{"SchedulerConfig.Gates", "ChangeNodes.Change", "DeleteBudget.Key", "Node.NodeDrain", "AuditRecord.AuditOrigin"}

// omitted lists struct fields that are not written if they are zero. Other struct
// fields are always written.
var omitted = []string{"PolicyState.LastTrial", "PolicyTrial.End", "PolicyVersion.Shadow"}

// derived lists exported fields that every server computes, and that are therefore not
// written. A derived field that were written could differ between servers of two
// releases.
var derived = []string{
	"Group.Job", "Group.Position", "Group.Ask", "Node.Avail", "Node.ClassKey", "Allocation.NodePos", "Cluster.Avail", "Binding.Ask",
}

// messageOnly lists fields of messages that hand-written code fills.
var messageOnly = []string{"Budget.Recent", "Observation.Names"}

// A custom conversion of a field. An empty decode leaves the field to
// hand-written code.
type custom struct{ encode, decode string }

var customs = map[string]custom{
	"Allocation.Job":             {encode: "e.jobs.number(v.Job)"},
	"Allocation.Group":           {encode: "e.name(v.Group.Name)"},
	"RegisterJob.Batch":          {encode: "e.batch(v.Batch, v.Job)", decode: "d.batch(m.Batch)"},
	"SchedulerConfig.Preemption": {encode: "encodePreemption(&v.Preemption)", decode: "d.preemption(m.Preemption)"},
	"SchedulerConfig.Observe":    {encode: "encodeObserve(&v.Observe)", decode: "d.preemption(m.Observe)"},
	"Observation.Choice":         {encode: "observedChoice(v.Choice, m)", decode: "d.observedChoice(m)"},
}

// enums holds the greatest value of every enumeration: a greater one was written
// by a newer release. A field's own limit takes precedence over its type's.
var enums = map[string]string{
	"JobType":         "model.JobTypes-1",
	"Evaluation.Type": "model.EvalTypes-1", // bindings have evaluations and are not jobs
	"NodeStatus":      "uint32(model.NodeDown)",
	"DesiredStatus":   "uint32(model.DesiredEvict)",
	"ClientStatus":    "uint32(model.ClientLost)",
	"EvalStatus":      "uint32(model.EvalCancelled)",
	"PolicyOp":        "uint32(replication.OpBlock)",
}
