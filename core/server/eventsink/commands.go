package eventsink

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/replication"
)

// A commandBuilder adds the events of a command that took effect.
type commandBuilder func(*eventBuilder, replication.Command)

func build[C replication.Command](add func(*eventBuilder, C)) commandBuilder {
	return func(b *eventBuilder, c replication.Command) { add(b, c.(C)) }
}

// noEvent is the builder of commands that publish nothing themselves.
func noEvent(*eventBuilder, replication.Command) {}

// builders is the event column of the table of commands: a command without a row
// fails every test of this package.
var builders = replication.NewTable("eventsink", map[replication.Kind]commandBuilder{
	replication.KindBootstrap: build(func(b *eventBuilder, c *replication.Bootstrap) { b.operator("ClusterNamed", c.ClusterID, "") }),
	replication.KindSetVersion: build(func(b *eventBuilder, c *replication.SetVersion) {
		b.operator("ClusterVersionRaised", "", fmt.Sprint(c.Version))
	}),
	replication.KindRegisterJob:   build((*eventBuilder).registerJob),
	replication.KindStopJob:       build((*eventBuilder).stopJob),
	replication.KindStopAllocs:    build((*eventBuilder).stopAllocs),
	replication.KindWriteEvals:    noEvent, // every evaluation of the result has an event
	replication.KindApplyPlans:    build(func(b *eventBuilder, c *replication.ApplyPlans) { b.batch(c.Batch) }),
	replication.KindRegisterNodes: build((*eventBuilder).registerNodes),
	replication.KindChangeNodes:   build((*eventBuilder).changeNodes),
	replication.KindDeleteNodes:   build((*eventBuilder).deleteNodes),
	replication.KindUpdateAllocs:  build((*eventBuilder).updateAllocs),
	replication.KindSetConfig:     build((*eventBuilder).setConfig),
	replication.KindUpsertPriorityClass: build(func(b *eventBuilder, c *replication.UpsertPriorityClass) {
		b.operator("PriorityClassPut", c.Class.Name, fmt.Sprintf("value %d", c.Class.Value))
	}),
	replication.KindDeletePriorityClass: build(func(b *eventBuilder, c *replication.DeletePriorityClass) {
		b.operator("PriorityClassDeleted", c.Name, "")
	}),
	replication.KindUpsertNamespace: build(func(b *eventBuilder, c *replication.UpsertNamespace) {
		b.operator("NamespacePut", c.Namespace.Name, fmt.Sprintf("weight %v", c.Namespace.Weight))
	}),
	replication.KindDeleteNamespace: build(func(b *eventBuilder, c *replication.DeleteNamespace) {
		b.operator("NamespaceDeleted", c.Name, "")
	}),
	replication.KindUpsertBudget: build(func(b *eventBuilder, c *replication.UpsertBudget) {
		b.operator("BudgetPut", c.Budget.Key().String(), "")
	}),
	replication.KindDeleteBudget:   build(func(b *eventBuilder, c *replication.DeleteBudget) { b.operator("BudgetDeleted", c.Key.String(), "") }),
	replication.KindUpsertClusters: build((*eventBuilder).upsertClusters),
	replication.KindChangeClusters: build((*eventBuilder).changeClusters),
	replication.KindDeleteCluster:  build((*eventBuilder).deleteCluster),
	replication.KindUpsertBinding:  build((*eventBuilder).upsertBinding),
	replication.KindStopBinding:    build(func(b *eventBuilder, c *replication.StopBinding) { b.binding("BindingStopped", c.Key) }),
	replication.KindDeleteBinding:  build((*eventBuilder).deleteBinding),
	replication.KindEndAssignments: build((*eventBuilder).endAssignments),

	replication.KindUpdateAssignments: build((*eventBuilder).updateAssignments),
	replication.KindStopAssignments:   build((*eventBuilder).stopAssignments),
	replication.KindCollect:           build((*eventBuilder).collect),
	replication.KindPutChunk:          noEvent, // LoadPolicy completes the upload
	replication.KindRestoreState:      noEvent, // the state is replaced: see Publisher.Observe
	replication.KindLoadPolicy:        build((*eventBuilder).loadPolicy),
	replication.KindCheckPolicy:       build((*eventBuilder).policyChecked),
	replication.KindReportShadow:      noEvent, // the status of the policy shows the sums
	replication.KindChangePolicy:      build((*eventBuilder).changePolicy),
	replication.KindPutToken: build(func(b *eventBuilder, c *replication.PutToken) {
		b.operator("TokenCreated", c.Token.Accessor, c.Token.Name)
	}),
	replication.KindDeleteToken: build(func(b *eventBuilder, c *replication.DeleteToken) { b.operator("TokenDeleted", c.Accessor, "") }),
	replication.KindPutSigner:   noEvent, // no operator acted
})
