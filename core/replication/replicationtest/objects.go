package replicationtest

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
)

// WebKey is the key of WebJob.
var WebKey = model.JobKey{Namespace: "default", ID: "web"}

// WebJob returns a job of two instances that use 60 of a node's 100 CPU.
func WebJob(priority int32) *model.Job {
	return &model.Job{Namespace: "default", ID: "web", Priority: priority, Groups: []*model.Group{{
		Name: "g", Count: 2, Resources: model.Resources{"cpu": 60},
	}}}
}

// NumberedJob returns a job with a specification that depends on n.
func NumberedJob(id string, n int) *model.Job {
	return &model.Job{Namespace: "default", ID: id, Meta: map[string]string{"n": fmt.Sprint(n)}, Groups: []*model.Group{{Name: "g"}}}
}

// Node returns a node with 100 of CPU and memory.
func Node(id string) *model.Node {
	return &model.Node{ID: id, Datacenter: "dc1", Capacity: model.Resources{"cpu": 100, "memory": 100}}
}

// Eval returns a pending evaluation.
func Eval(id string, key model.JobKey) *model.Evaluation {
	return &model.Evaluation{ID: id, Namespace: key.Namespace, JobID: key.ID, TriggeredBy: model.TriggerJobRegister}
}
