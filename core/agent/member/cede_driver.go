package member

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/sdk/client"
)

// CedeDriverConfig configures a CedeDriver. Servers and Parse are required.
type CedeDriverConfig struct {
	Servers   *client.Client // of the member cluster
	Namespace string         // of its jobs; "": the client's namespace
	// Parse parses the template of a binding: a job with one group.
	Parse func(template []byte) (*client.Job, error)
}

// A CedeDriver is a driver for a member cluster that is a cede cluster. An assignment
// of r replicas becomes a job with count r, and the status of the job is that of the
// assignment. Job metadata contains the assignment ID, so that the driver recognizes
// jobs of an earlier agent. Create it with NewCedeDriver.
type CedeDriver struct{ c CedeDriverConfig }

var _ Driver = (*CedeDriver)(nil)

// NewCedeDriver returns a driver.
func NewCedeDriver(c CedeDriverConfig) *CedeDriver { return &CedeDriver{c} }

// Names that identify the jobs of assignments.
const (
	jobPrefix      = "member-"
	metaAssignment = "cede.assignment"
	metaSpec       = "cede.spec" // hash of the job as registered
)

// jobID returns the job ID of an assignment. It contains the name of the binding for
// readability, and the assignment ID for uniqueness.
func jobID(w *Workload) string {
	sum := sha256.Sum256([]byte(w.ID))
	return fmt.Sprintf("%s%s-%s-%s", jobPrefix, w.Namespace, w.Binding, hex.EncodeToString(sum[:4]))
}

func (n *CedeDriver) query() *client.QueryOptions {
	return &client.QueryOptions{Namespace: n.c.Namespace}
}

func (n *CedeDriver) write() client.WriteOptions {
	return client.WriteOptions{Namespace: n.c.Namespace}
}

// Resources returns the capacity of the ready, eligible nodes. The usable part
// excludes the resources of jobs that do not belong to assignments.
func (n *CedeDriver) Resources(ctx context.Context) (*ClusterResources, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	nodes, err := listAll(ctx, nil, n.c.Servers.Nodes().List)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	allocs, err := listAll(ctx, &client.QueryOptions{Namespace: "*"}, n.c.Servers.Allocations().List)
	if err != nil {
		return nil, fmt.Errorf("allocations: %w", err)
	}
	resources := &ClusterResources{Capacity: map[string]int64{}, Usable: map[string]int64{}}
	taking := map[string]bool{}
	for _, node := range nodes {
		if node.Status != "ready" || node.Drain || node.SchedulingEligibility == client.NodeIneligible {
			continue
		}
		taking[node.ID] = true
		for name, amount := range node.Capacity {
			resources.Capacity[name] += max(0, amount-node.ReservedCapacity[name])
		}
	}
	maps.Copy(resources.Usable, resources.Capacity)
	for _, a := range allocs {
		if !taking[a.NodeID] || !holdsResources(a) || isAssignment(a.JobID) {
			continue
		}
		for name, amount := range a.ResourceUse {
			if has, ok := resources.Usable[name]; ok {
				resources.Usable[name] = max(0, has-amount)
			}
		}
	}
	return resources, nil
}

// holdsResources reports whether an allocation uses resources. A stopping allocation
// does until it has ended.
func holdsResources(a *client.AllocationStub) bool {
	return a.ClientStatus == "running" || a.ClientStatus == "pending" && a.DesiredStatus == "run"
}

func isAssignment(job string) bool {
	return len(job) > len(jobPrefix) && job[:len(jobPrefix)] == jobPrefix
}

// Status returns the status of the jobs of assignments, by assignment ID.
func (n *CedeDriver) Status(ctx context.Context) (map[string]Status, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	q := n.query()
	q.Prefix = jobPrefix
	jobs, err := listAll(ctx, q, n.c.Servers.Jobs().List)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	all := map[string]Status{}
	if len(jobs) == 0 {
		return all, nil
	}
	allocs, err := listAll(ctx, n.query(), n.c.Servers.Allocations().List)
	if err != nil {
		return nil, fmt.Errorf("allocations: %w", err)
	}
	of := map[string][]*client.AllocationStub{}
	for _, a := range allocs {
		of[a.JobID] = append(of[a.JobID], a)
	}
	for _, j := range jobs {
		id := j.Meta[metaAssignment]
		status := statusOf(j, of[j.ID])
		if id == "" || j.Stop && status.Held == 0 {
			continue // not of an assignment, or already purged
		}
		all[id] = status
	}
	return all, nil
}

func statusOf(j *client.JobStub, allocs []*client.AllocationStub) Status {
	s := Status{Text: cmp.Or(j.StatusDescription, "job "+j.ID+" is "+j.Status)}
	failed := 0
	for _, a := range allocs {
		if holdsResources(a) {
			s.Held++
		}
		switch {
		case a.ClientStatus == "running" && a.DesiredStatus == "run":
			s.Ready++
		case a.ClientStatus == "failed":
			failed++
		}
	}
	if j.Status == "dead" && !j.Stop { // a finite job that has completed
		s.Complete, s.Failed = failed == 0, failed > 0
	}
	if failed > 0 {
		s.Text = fmt.Sprintf("job %s: %d replicas failed", j.ID, failed)
	}
	return s
}

// Run registers the job of a workload unless it is registered and unchanged.
func (n *CedeDriver) Run(ctx context.Context, w *Workload) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	job, err := n.job(w)
	if err != nil {
		return err
	}
	existing, _, err := n.c.Servers.Jobs().Get(ctx, job.ID, n.query())
	switch {
	case err == nil && !existing.Stop && existing.Meta[metaSpec] == job.Meta[metaSpec]:
		return nil
	case err != nil && !client.IsNotFound(err):
		return err
	}
	_, err = n.c.Servers.Jobs().Register(ctx, job, &client.RegisterOptions{WriteOptions: n.write()})
	return err
}

// Stop stops the job, and purges it when all of its allocations have ended.
func (n *CedeDriver) Stop(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	q := n.query()
	q.Prefix = jobPrefix
	jobs, err := listAll(ctx, q, n.c.Servers.Jobs().List)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(jobs, func(j *client.JobStub) bool { return j.Meta[metaAssignment] == id && !j.Stop })
	if at < 0 {
		return nil
	}
	_, err = n.c.Servers.Jobs().Stop(ctx, jobs[at].ID, &client.StopOptions{WriteOptions: n.write()})
	return err
}

// job returns the job to register for a workload.
func (n *CedeDriver) job(w *Workload) (*client.Job, error) {
	job := &client.Job{TaskGroups: []*client.TaskGroup{{Name: "replica", Tasks: []*client.Task{{Name: "replica", Driver: "sim"}}}}}
	if len(w.Template) > 0 {
		var err error
		if job, err = n.c.Parse(w.Template); err != nil {
			return nil, fmt.Errorf("template of binding: %w", err)
		}
		if len(job.TaskGroups) != 1 {
			return nil, fmt.Errorf("template of binding has %d groups: expected 1", len(job.TaskGroups))
		}
	}
	job.ID, job.Name, job.Namespace = jobID(w), w.Binding, n.c.Namespace
	job.Priority, job.PriorityClass = new(w.Priority), ""
	group := job.TaskGroups[0]
	group.Count = new(w.Replicas)
	if w.Duration > 0 {
		job.Type, group.Duration = "batch", w.Duration
	}
	size(group, w)
	job.Meta = maps.Clone(job.Meta)
	if job.Meta == nil {
		job.Meta = map[string]string{}
	}
	job.Meta[metaAssignment] = w.ID
	spec, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(spec)
	job.Meta[metaSpec] = hex.EncodeToString(sum[:8])
	return job, nil
}

// size sets the resources of a replica on the first task, because resources of a
// group are added to those that tasks have by default.
func size(group *client.TaskGroup, w *Workload) {
	group.Resources = map[string]int64{}
	for name, amount := range w.Resources {
		if name != "cpu" && name != "memory" {
			group.Resources[name] = amount
		}
	}
	for i, t := range group.Tasks {
		if t.Resources == nil {
			t.Resources = &client.Resources{}
		}
		cpu, memory := 0, 0
		if i == 0 {
			cpu, memory = int(w.Resources["cpu"]), int(w.Resources["memory"])
		}
		t.Resources.CPU, t.Resources.MemoryMB = &cpu, &memory
		if t.KillTimeout == nil && w.KillTimeout > 0 {
			t.KillTimeout = &w.KillTimeout
		}
	}
}

// listAll returns the elements of all pages.
func listAll[T any](ctx context.Context, q *client.QueryOptions, list func(context.Context, *client.QueryOptions) ([]T, *client.QueryMeta, error)) ([]T, error) {
	options := client.QueryOptions{}
	if q != nil {
		options = *q
	}
	options.PerPage = 1000
	var all []T
	err := client.AllPages(ctx, &options, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		part, meta, err := list(ctx, q)
		all = append(all, part...)
		return meta, err
	})
	return all, err
}
