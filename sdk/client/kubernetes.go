package client

import (
	"context"
	"net/http"
	"net/url"
)

// KubernetesController is the state of a `cede kubernetes`, as it reports it.
type KubernetesController struct {
	ID            string
	Version       string `json:",omitempty"` // release of the program
	Ready         bool   // it has read its cluster, and answers kube-scheduler
	Problem       string `json:",omitempty"` // reason why it is not ready
	Nodes, Pods   int    // of its cluster
	Policy        string // as configured, for example pool://rules
	PolicyVersion string `json:",omitempty"` // in the pool; absent: the policy is not from the pool
	PolicyProblem string `json:",omitempty"` // reason why a newer policy is not loaded
	Lost          int64  `json:",omitempty"` // decisions that were not reported, because too many waited or they were too large

	// Set by the server.

	Time int64 `json:",omitempty"` // of the report, in Unix nanoseconds
}

// KubernetesDecision is the final result of a preemption request of a kube-scheduler.
type KubernetesDecision struct {
	Time          int64         // of the response, in Unix nanoseconds
	Pod           KubernetesPod // for which pods are evicted
	Node          string        `json:",omitempty"` // absent: the response names no node, or several
	Victims       []KubernetesPod
	Outcome       string   // chosen: the victims were evicted; discarded: they were not; for the others see the metric cede_kube_preemptions_total
	Reasons       []string `json:",omitempty"` // sentences on the choice of the node and of the victims
	Problem       string   `json:",omitempty"` // reason why the policy did not choose
	Proposed      bool     `json:",omitempty"` // the victims are those that kube-scheduler proposed
	PolicyVersion string   `json:",omitempty"` // in the pool, at the time of the result

	// Set by the server.

	Controller string `json:",omitempty"` // ID
}

// KubernetesPod identifies a pod.
type KubernetesPod struct {
	Namespace, Name string `json:",omitempty"` // absent: only the UID is known
	UID             string
	Priority        int
}

// KubernetesReport is the state of a controller and its decisions since the last report.
type KubernetesReport struct {
	KubernetesController

	Decisions []*KubernetesDecision `json:",omitempty"` // oldest first
}

// Kubernetes holds the calls for controllers of Kubernetes clusters; see Client.Kubernetes.
type Kubernetes struct{ c *Client }

// Kubernetes returns the calls for controllers of Kubernetes clusters.
func (c *Client) Kubernetes() Kubernetes { return Kubernetes{c} }

// Report reports the state and the decisions of a controller to the responding server.
func (k Kubernetes) Report(ctx context.Context, r *KubernetesReport) error {
	return k.c.write(ctx, http.MethodPut, nil, true, r, nil, "kubernetes", "controller", r.ID)
}

// Controllers lists the controllers that report to the responding server, by ID.
func (k Kubernetes) Controllers(ctx context.Context) (list []*KubernetesController, err error) {
	_, err = k.c.get(ctx, nil, &list, "kubernetes", "controllers")
	return list, err
}

// Decisions lists the decisions that were reported to the responding server, newest first;
// "" means those of all controllers.
func (k Kubernetes) Decisions(ctx context.Context, controller string) (list []*KubernetesDecision, err error) {
	q := &QueryOptions{}
	if controller != "" {
		q.Params = url.Values{"controller": {controller}}
	}
	_, err = k.c.get(ctx, q, &list, "kubernetes", "decisions")
	return list, err
}
