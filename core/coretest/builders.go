package coretest

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A JobBuilder builds a job with one group named "g".
type JobBuilder struct{ job *model.Job }

// Job starts a service job of priority 50 with one instance that requests nothing.
func Job(id string) *JobBuilder {
	return &JobBuilder{&model.Job{
		Namespace: model.DefaultNamespace, ID: id, Type: model.JobService, Priority: model.DefaultPriority,
		Groups: []*model.Group{{Name: "g", Count: 1, MaxParallelEvictions: 1}},
	}}
}

// Type sets the job's type.
func (b *JobBuilder) Type(t model.JobType) *JobBuilder { b.job.Type = t; return b }

// Priority sets the job's priority.
func (b *JobBuilder) Priority(p int32) *JobBuilder { b.job.Priority = p; return b }

// Count sets the number of instances of the last group.
func (b *JobBuilder) Count(n int) *JobBuilder { b.group().Count = n; return b }

// Ask sets processor, memory and disk of the last group.
func (b *JobBuilder) Ask(cpu, memory, disk int64) *JobBuilder {
	b.group().Resources = model.Resources{"cpu": cpu, "memory": memory, "disk": disk}
	return b
}

// Group starts another group.
func (b *JobBuilder) Group(name string, count int) *JobBuilder {
	b.job.Groups = append(b.job.Groups, &model.Group{Name: name, Count: count, MaxParallelEvictions: 1})
	return b
}

// With changes the last group.
func (b *JobBuilder) With(change func(*model.Group)) *JobBuilder { change(b.group()); return b }

// Change changes the job.
func (b *JobBuilder) Change(change func(*model.Job)) *JobBuilder { change(b.job); return b }

// Obj returns the job.
func (b *JobBuilder) Obj() *model.Job { return b.job }

func (b *JobBuilder) group() *model.Group { return b.job.Groups[len(b.job.Groups)-1] }

// Node returns a ready node in dc1.
func Node(id string, cpu, memory, disk int64) *model.Node {
	return &model.Node{
		ID: id, Datacenter: "dc1",
		Capacity: model.Resources{"cpu": cpu, "memory": memory, "disk": disk},
	}
}

// Running returns a live allocation of a group of a stored job.
func Running(id string, job *model.Job, group, index int, nodeID string) *model.Allocation {
	return &model.Allocation{
		ID: id, Job: job, Group: job.Groups[group], Index: index, NodeID: nodeID,
		Client: model.ClientRunning, Started: true,
	}
}

// Eval returns an evaluation of a job.
func Eval(job *model.Job) *model.Evaluation {
	return &model.Evaluation{
		ID: "eval-" + job.ID, Namespace: job.Namespace, JobID: job.ID, Type: job.Type,
		Priority: job.Priority, TriggeredBy: model.TriggerJobRegister,
	}
}

// AllPreempt returns a scheduler configuration in which every job type may preempt.
func AllPreempt() *model.SchedulerConfig {
	c := &model.SchedulerConfig{Algorithm: model.Binpack}
	for t := range c.Preemption {
		c.Preemption[t] = true
	}
	return c
}

// FilledStore returns a store with equal nodes and perNode running allocations on
// each, as construction (b) of the published measurements: 4000 MHz, 8192 MB and
// 100 GiB with 100/256/4 GiB reserved. The allocation in slot k requests
// 390/790/300 and has priority 20+5·(k mod 7), in one of 70 jobs.
func FilledStore(nodes, perNode int) *state.Store {
	return FilledStoreWith(nodes, perNode, func(*model.Job) {}, func(*model.Allocation) {})
}

// FilledStoreWith is FilledStore with changes to each job before it is stored, and
// to each allocation.
func FilledStoreWith(nodes, perNode int, change func(*model.Job), alter func(*model.Allocation)) *state.Store {
	s := state.New()
	txn := s.Begin(1)
	for i := range nodes {
		must(txn.NodeWriter().Upsert(&model.Node{
			ID: fmt.Sprintf("n%05d", i), Datacenter: "dc1",
			Capacity:   model.Resources{"cpu": 4000, "memory": 8192, "disk": 100 * 1024},
			Reserved:   model.Resources{"cpu": 100, "memory": 256, "disk": 4 * 1024},
			Attributes: map[string]string{"kernel": "linux", "version": "1.2.3"},
		}))
	}
	jobs := map[string]*model.Job{}
	for i := range nodes {
		for k := range perNode {
			priority := int32(20 + 5*(k%7))
			id := fmt.Sprintf("p%d-g%d", priority, i%10)
			job := jobs[id]
			if job == nil {
				job = Job(id).Priority(priority).Ask(390, 790, 300).Obj()
				change(job)
				must(txn.JobWriter().Upsert(job))
				jobs[id] = job
			}
			job.Groups[0].Count++
			a := Running(fmt.Sprintf("a%05d-%02d", i, k), job, 0, i*perNode+k, fmt.Sprintf("n%05d", i))
			alter(a)
			txn.AllocWriter().Upsert(a)
		}
	}
	txn.ConfigWriter().Set(AllPreempt())
	txn.Commit()
	return s
}

// PreemptingJob returns the job of construction (b): priority 90, count instances
// of 500/1024/300, with two constraints that every node satisfies.
func PreemptingJob(count int) *JobBuilder {
	return Job("asker").Priority(90).Count(count).Ask(500, 1024, 300).With(func(g *model.Group) {
		g.Constraints = []model.Constraint{
			{Attribute: "kernel", Operator: model.OpEqual, Value: "linux"},
			{Attribute: "version", Operator: model.OpVersion, Value: ">= 1.0"},
		}
	})
}

// PutJobs stores jobs at the next index.
func PutJobs(s *state.Store, jobs ...*model.Job) *state.Snapshot {
	txn := s.Begin(s.Snapshot().Index() + 1)
	for _, j := range jobs {
		must(txn.JobWriter().Upsert(j))
	}
	return txn.Commit()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
