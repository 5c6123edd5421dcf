package member

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A Driver runs assignments on a member cluster. Its methods are idempotent.
// Resources may be called concurrently with the others, which are called from one
// goroutine.
type Driver interface {
	// Resources returns the resources of the cluster.
	Resources(ctx context.Context) (*ClusterResources, error)
	// Status returns the status of all workloads by assignment ID, including
	// those that an earlier agent started. If a workload is absent, it has ended
	// or never started.
	Status(ctx context.Context) (map[string]Status, error)
	// Run starts a workload with its number of replicas, or changes it to that.
	Run(ctx context.Context, w *Workload) error
	// Stop stops a workload. It remains in Status until it has ended.
	Stop(ctx context.Context, id string) error
}

// ClusterResources are the resources of a member cluster that bindings can use.
type ClusterResources struct {
	Capacity map[string]int64 // by resource: cpu in millicores, memory and disk in MiB, any other name in whole units
	Usable   map[string]int64 // part of Capacity not used by the cluster's own workloads; nil: all
}

// A Workload is an assignment in the form that a driver needs.
type Workload struct {
	ID          string // assignment ID
	Namespace   string // of the binding
	Binding     string // binding ID
	Replicas    int
	Priority    int
	Resources   map[string]int64 // of one replica
	Duration    time.Duration    // run time of a replica; 0: until it ends by itself
	KillTimeout time.Duration
	Template    json.RawMessage // specification of a replica; empty: the driver's default
}

// Status is the status of a workload.
type Status struct {
	Ready    int // replicas that are ready
	Held     int // replicas that use resources, including those that start or stop
	Complete bool
	Failed   bool
	Text     string // description for users
}

// workloadOf returns the workload of an assignment that includes its binding.
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
