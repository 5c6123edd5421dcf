package member

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// Driver runs on a member cluster what is assigned to it. Its methods may be
// called again for what is done already. Room may be called beside the others, which
// one goroutine calls.
type Driver interface {
	// Resources is what the cluster has.
	Resources(ctx context.Context) (*ClusterResources, error)
	// Status is what there is of assignments, whoever started it, by id. What is not
	// in it is gone, or never was.
	Status(ctx context.Context) (map[string]Status, error)
	// Run has work run, with as many replicas as it says, or changes it to that.
	Run(ctx context.Context, w *Workload) error
	// Stop has work stop; it is gone from Status when that is done.
	Stop(ctx context.Context, id string) error
}

// ClusterResources is what a member cluster has for bindings.
type ClusterResources struct {
	Capacity map[string]int64 // by resource: cpu in millicores, memory and disk in MiB, any other name in whole units
	Usable   map[string]int64 // how much of Capacity others than the cluster's own work may use; nil: all
}

// Workload is an assignment as a driver needs it.
type Workload struct {
	ID          string // of the assignment
	Namespace   string // of the binding
	Binding     string // id
	Replicas    int
	Priority    int
	Resources   map[string]int64 // of one replica
	Duration    time.Duration    // how long a replica runs; 0: until it ends by itself
	KillTimeout time.Duration
	Template    json.RawMessage // what a replica is; empty: the driver's default
}

// Status is how work stands.
type Status struct {
	Ready    int // replicas that work
	Held     int // replicas that hold room, those that start or stop included
	Complete bool
	Failed   bool
	Text     string // for people
}

// workloadOf is what a driver needs of an assignment that comes with its binding.
func workloadOf(a *client.Assignment) *Workload {
	b := a.Binding
	w := &Workload{
		ID: a.ID, Namespace: a.Namespace, Binding: a.BindingID, Replicas: a.Replicas, Priority: a.Priority,
		Resources: b.Resources, Duration: b.Duration, Template: b.Template,
	}
	if b.KillTimeout != nil {
		w.KillTimeout = *b.KillTimeout
	}
	return w
}
