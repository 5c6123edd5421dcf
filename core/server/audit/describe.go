package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// A describer returns the action, the object and the detail of a command; nil: the command
// is not audited.
type describer func(*state.Snapshot, replication.Command) *model.AuditRecord

func describe[C replication.Command](text func(*state.Snapshot, C) *model.AuditRecord) describer {
	return func(snap *state.Snapshot, c replication.Command) *model.AuditRecord { return text(snap, c.(C)) }
}

// record returns a describer of commands with the same action.
func record[C replication.Command](action string, text func(*state.Snapshot, C) (object, detail string)) describer {
	return describe(func(snap *state.Snapshot, c C) *model.AuditRecord {
		object, detail := text(snap, c)
		return &model.AuditRecord{Action: action, Object: object, Detail: detail}
	})
}

// notAudited marks a command that no operator requests, or that is not a setting.
func notAudited(*state.Snapshot, replication.Command) *model.AuditRecord { return nil }

// Describe returns the record of a command that is about to be proposed on a state, without
// its origin, or nil if the command is not audited.
func Describe(snap *state.Snapshot, c replication.Command) *model.AuditRecord {
	return describers.Of(c)(snap, c)
}

// The actions that are not of policies; those begin with policy. and the name of an operation.
const (
	actionConfig          = "scheduler.config"
	actionTokenCreate     = "token.create"
	actionTokenDelete     = "token.delete"
	actionClassPut        = "priority-class.put"
	actionClassDelete     = "priority-class.delete"
	actionNamespacePut    = "namespace.put"
	actionNamespaceDelete = "namespace.delete"
	actionBudgetPut       = "budget.put"
	actionBudgetDelete    = "budget.delete"
	actionRestore         = "snapshot.restore"
	actionLoad            = "policy.load"
	actionCollect         = "policy.collect"
)

// Actions lists every action, ascending.
func Actions() []string {
	list := []string{
		actionConfig, actionTokenCreate, actionTokenDelete, actionClassPut, actionClassDelete, actionNamespacePut, actionNamespaceDelete,
		actionBudgetPut, actionBudgetDelete, actionRestore, actionLoad, actionCollect,
	}
	for op := replication.OpShadow; op < replication.OpBlock; op++ {
		list = append(list, policyAction(op))
	}
	slices.Sort(list)
	return list
}

func policyAction(op replication.PolicyOp) string { return "policy." + op.String() }

var describers = replication.NewTable("audit", map[replication.Kind]describer{
	replication.KindBootstrap:     notAudited,
	replication.KindSetVersion:    notAudited,
	replication.KindRegisterJob:   notAudited,
	replication.KindStopJob:       notAudited,
	replication.KindStopAllocs:    notAudited,
	replication.KindWriteEvals:    notAudited,
	replication.KindApplyPlans:    notAudited,
	replication.KindRegisterNodes: notAudited,
	replication.KindChangeNodes:   notAudited,
	replication.KindDeleteNodes:   notAudited,
	replication.KindUpdateAllocs:  notAudited,
	replication.KindSetConfig: record(actionConfig, func(snap *state.Snapshot, c *replication.SetConfig) (object, detail string) {
		return "", configChanges(snap.Config(), c.Config)
	}),
	replication.KindUpsertPriorityClass: record(actionClassPut, func(snap *state.Snapshot, c *replication.UpsertPriorityClass) (object, detail string) {
		return c.Class.Name, changes(classFields(snap.PriorityClass(c.Class.Name)), classFields(c.Class))
	}),
	replication.KindDeletePriorityClass: record(actionClassDelete, func(snap *state.Snapshot, c *replication.DeletePriorityClass) (object, detail string) {
		return c.Name, changes(classFields(snap.PriorityClass(c.Name)), nil)
	}),
	replication.KindUpsertNamespace: record(actionNamespacePut, func(snap *state.Snapshot, c *replication.UpsertNamespace) (object, detail string) {
		return c.Namespace.Name, namespaceChanges(snap.Namespace(c.Namespace.Name), c.Namespace)
	}),
	replication.KindDeleteNamespace: record(actionNamespaceDelete, func(snap *state.Snapshot, c *replication.DeleteNamespace) (object, detail string) {
		return c.Name, changes(namespaceFields(snap.Namespace(c.Name)), nil)
	}),
	replication.KindUpsertBudget: record(actionBudgetPut, func(snap *state.Snapshot, c *replication.UpsertBudget) (object, detail string) {
		return c.Budget.Key().String(), changes(budgetFields(snap.Budget(c.Budget.Key())), budgetFields(c.Budget))
	}),
	replication.KindDeleteBudget: record(actionBudgetDelete, func(snap *state.Snapshot, c *replication.DeleteBudget) (object, detail string) {
		return c.Key.String(), changes(budgetFields(snap.Budget(c.Key)), nil)
	}),
	replication.KindUpsertClusters:    notAudited,
	replication.KindChangeClusters:    notAudited,
	replication.KindDeleteCluster:     notAudited,
	replication.KindUpsertBinding:     notAudited,
	replication.KindStopBinding:       notAudited,
	replication.KindDeleteBinding:     notAudited,
	replication.KindEndAssignments:    notAudited,
	replication.KindUpdateAssignments: notAudited,
	replication.KindStopAssignments:   notAudited,
	replication.KindCollect:           describe(collected),
	replication.KindPutChunk:          notAudited, // LoadPolicy or RestoreState completes the upload
	replication.KindRestoreState: record(actionRestore, func(snap *state.Snapshot, c *replication.RestoreState) (object, detail string) {
		return c.Digest, fmt.Sprintf("the state of index %d was replaced", snap.Index())
	}),
	replication.KindLoadPolicy: record(actionLoad, func(_ *state.Snapshot, c *replication.LoadPolicy) (object, detail string) {
		v := c.Version
		return v.Name, join(
			"version "+model.ShortVersion(v.ID), v.Kind, labelled("module ", v.Digest), labelled("signed by ", v.Signer),
			labelled("grants ", strings.Join(v.Grants, " ")))
	}),
	replication.KindCheckPolicy:  notAudited,
	replication.KindReportShadow: notAudited,
	replication.KindChangePolicy: describe(policyChange),
	replication.KindPutToken: record(actionTokenCreate, func(_ *state.Snapshot, c *replication.PutToken) (object, detail string) {
		return c.Token.Accessor, tokenText(c.Token)
	}),
	replication.KindDeleteToken: record(actionTokenDelete, func(snap *state.Snapshot, c *replication.DeleteToken) (object, detail string) {
		return c.Accessor, tokenText(snap.Token(c.Accessor))
	}),
	replication.KindPutSigner: notAudited,
})

// collected describes the garbage collection of policy versions; that of other objects is
// not a change of a setting.
func collected(_ *state.Snapshot, c *replication.Collect) *model.AuditRecord {
	if len(c.Policies) == 0 {
		return nil
	}
	list := make([]string, len(c.Policies))
	for i, id := range c.Policies {
		list[i] = model.ShortVersion(id)
	}
	return &model.AuditRecord{Action: actionCollect, Detail: "unused versions " + strings.Join(list, ", ")}
}

// policyChange describes a change of the role of a version. The blocks of a trial are part
// of the trial.
func policyChange(snap *state.Snapshot, c *replication.ChangePolicy) *model.AuditRecord {
	if c.Op == replication.OpBlock {
		return nil
	}
	r := &model.AuditRecord{Action: policyAction(c.Op), Object: c.Name}
	var parts []string
	if c.Version != "" {
		parts = append(parts, "version "+model.ShortVersion(c.Version))
	}
	if s := snap.PolicyState(c.Name); s != nil && c.Op != replication.OpShadow && c.Op != replication.OpUnshadow && s.Active != "" && s.Active != c.Version {
		parts = append(parts, "active was "+model.ShortVersion(s.Active))
	}
	if c.Until != 0 && c.Op != replication.OpRollback {
		parts = append(parts, "until "+time.Unix(0, c.Until).UTC().Format(time.RFC3339))
	}
	if t := c.Trial; t != nil {
		parts = append(parts, fmt.Sprintf("blocks of %s", time.Duration(t.Block)), labelled("stop if ", t.StopIf), labelled("promote if ", t.PromoteIf))
	}
	if c.Op == replication.OpRollback && c.Until != 0 && c.Reason == "" {
		parts = append(parts, "the time of the trial was over")
	}
	if c.Force {
		parts = append(parts, "forced")
	}
	r.Detail = join(append(parts, c.Reason)...)
	return r
}

func tokenText(t *model.Token) string {
	if t == nil {
		return ""
	}
	expires := ""
	if t.ExpiresAt != 0 {
		expires = "until " + time.Unix(0, t.ExpiresAt).UTC().Format(time.RFC3339)
	}
	return join(fmt.Sprintf("name %q", t.Name), "roles "+strings.Join(t.Roles, " "), labelled("namespace ", t.Namespace), expires)
}

// labelled returns a text with its label, or "" if the text is empty.
func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return label + text
}

// join joins the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// A field is a property of an object, as text.
type field struct{ name, value string }

// changes describes the fields that differ. An object that does not exist has no fields.
func changes(before, after []field) string {
	old := map[string]string{}
	for _, f := range before {
		old[f.name] = f.value
	}
	var parts []string
	for _, f := range after {
		was, existed := old[f.name]
		delete(old, f.name)
		switch {
		case existed && was != f.value:
			parts = append(parts, fmt.Sprintf("%s: %s -> %s", f.name, was, f.value))
		case !existed:
			parts = append(parts, f.name+": "+f.value)
		}
	}
	for _, f := range before {
		if was, left := old[f.name]; left {
			parts = append(parts, fmt.Sprintf("%s: was %s", f.name, was))
		}
	}
	if len(parts) == 0 {
		return "no field differs"
	}
	return strings.Join(parts, ", ")
}

// configChanges describes the settings that differ.
func configChanges(before, after *model.SchedulerConfig) string {
	return changes(configFields(before), configFields(after))
}

func configFields(c *model.SchedulerConfig) []field {
	list := []field{{"algorithm", string(c.Algorithm)}, {"policy", c.PolicyOf(&model.Job{})}, {"priority-delta", optional(c.PriorityDelta)}}
	for t := range model.EvalTypes {
		list = append(list, field{"preempt-" + model.JobType(t).String(), preemptionMode(c, model.JobType(t))})
	}
	onFault := c.OnFault
	if onFault == "" {
		onFault = model.OnFaultDeny
	}
	moves := "off"
	if c.Moves != nil {
		moves = c.Moves.String()
	}
	return append(
		list, field{"on-fault", onFault}, field{"broker-paused", fmt.Sprint(c.BrokerPaused)}, field{"coalescing", optional(c.Coalescing)},
		field{"shedding", optional(c.Shedding)}, field{"moves", moves},
		field{"PriorityBasedScheduling", optional(c.Gates.PriorityBasedScheduling)},
		field{"PriorityBasedPreemptiveScheduling", optional(c.Gates.PriorityBasedPreemptiveScheduling)},
		field{"StrictPriorityClasses", optional(c.Gates.StrictPriorityClasses)},
	)
}

// preemptionMode returns the word of the setting of a job type.
func preemptionMode(c *model.SchedulerConfig, t model.JobType) string {
	switch {
	case c.Preemption[t]:
		return "on"
	case c.Observe[t]:
		return "observe"
	}
	return "off"
}

// optional returns the text of an optional setting.
func optional[T any](p *T) string {
	if p == nil {
		return "default"
	}
	return fmt.Sprint(*p)
}

func classFields(c *model.PriorityClass) []field {
	if c == nil {
		return nil
	}
	return []field{
		{"value", fmt.Sprint(c.Value)},
		{"global default", fmt.Sprint(c.GlobalDefault)},
		{"never preempts", fmt.Sprint(c.NeverPreempts)},
		{"description", fmt.Sprintf("%q", c.Description)},
	}
}

// namespaceChanges describes the fields that differ. A weight of 0 retains the stored one.
func namespaceChanges(before, after *model.Namespace) string {
	next := *after
	if next.Weight == 0 {
		next.Weight = model.DefaultWeight
		if before != nil {
			next.Weight = before.Weight
		}
	}
	return changes(namespaceFields(before), namespaceFields(&next))
}

func namespaceFields(n *model.Namespace) []field {
	if n == nil {
		return nil
	}
	return []field{{"weight", fmt.Sprint(n.Weight)}, {"description", fmt.Sprintf("%q", n.Description)}}
}

func budgetFields(b *model.Budget) []field {
	if b == nil {
		return nil
	}
	labels := []string{}
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		labels = append(labels, key+"="+b.Labels[key])
	}
	list := []field{{"labels", "[" + strings.Join(labels, " ") + "]"}, {"strict", fmt.Sprint(b.Strict)}}
	for _, bound := range []struct {
		name string
		b    *model.Bound
	}{{"min available", b.MinAvailable}, {"max unavailable", b.MaxUnavailable}} {
		if bound.b != nil {
			list = append(list, field{bound.name, bound.b.String()})
		}
	}
	if b.MaxEvictions != nil {
		list = append(list, field{"max evictions", b.MaxEvictions.String()})
	}
	return list
}
