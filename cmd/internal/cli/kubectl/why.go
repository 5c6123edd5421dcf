package kubectl

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/compare"
	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// States of an explanation.
const (
	statePending   = "pending"
	stateGated     = "gated"
	stateEvicted   = "evicted"   // by a preemption
	stateDisrupted = "disrupted" // by something else
	stateOnNode    = "running"
	stateFinished  = "finished"
)

// An explanation is the document of `kubectl cede why`.
type explanation struct {
	Version       int        `json:"version"`
	Namespace     string     `json:"namespace"`
	Pod           string     `json:"pod"`
	State         string     `json:"state"`
	Priority      *int32     `json:"priority,omitempty"` // unknown if the pod was deleted
	Node          string     `json:"node,omitempty"`
	NominatedNode string     `json:"nominatedNode,omitempty"`
	Message       string     `json:"message,omitempty"` // of Kubernetes
	Evictions     []eviction `json:"evictions,omitempty"`
	// WhatIf is the result of scheduling a pending pod now.
	WhatIf *compare.Answer `json:"whatIf,omitempty"`
}

// An eviction is an event of a preemption of the pod.
type eviction struct {
	Time     time.Time `json:"time"`
	By       string    `json:"by,omitempty"` // NAMESPACE/POD; unknown if the pod was deleted
	Priority *int32    `json:"priority,omitempty"`
	Message  string    `json:"message"`
}

func newWhyCmd(c *cluster) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "why POD",
		Short:       "Explain why a pod is pending, or was evicted",
		Annotations: cmdutil.ExitCodes("3 the API server cannot be reached", "4 no such pod, and no event of its eviction", "7 a policy failed"),
		Long: `Explain the state of a pod. POD may be a unique prefix, or NAMESPACE/POD.

A pending pod: the message of kube-scheduler, and the pods that would be evicted for it
now, under each policy. An evicted pod: the pod for which it was evicted, its priority and
the time. After the pod is deleted, this is known as long as the API server stores the
event, which is an hour by default.`,
		Example: `  cede kubectl why shop -n web
  cede kubectl why web/shop -p 'protect?minRuntime=10m' -o json`,
		Args: cmdutil.PositionalArgs(1, 1, "a pod"),
	}
	live := compare.NewLive(cmd, c.env, basePolicy)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := live.Resolve(1, basePolicy); err != nil {
			return err
		}
		return c.why(cmd.Context(), live, args[0])
	}
	return cmd
}

func (c *cluster) why(ctx context.Context, live *compare.Live, arg string) error {
	d, err := c.dump(ctx)
	if err != nil {
		return err
	}
	name, err := c.parsePod(arg)
	if err != nil {
		return err
	}
	found, err := findPod(d, name)
	if err != nil && cmdutil.ExitOf(err) != cmdutil.ExitNotFound {
		return err
	}
	if found != nil {
		name = nameOf(found)
	}
	x := &explanation{Version: 1, Namespace: name.namespace, Pod: name.name, State: stateEvicted}
	eventsErr := c.readEvictions(ctx, d, x)
	if found == nil {
		if len(x.Evictions) > 0 {
			return live.Out().Show(x.document())
		}
		if eventsErr != nil {
			c.env.Warn(eventsErr.Error() + ": whether the pod was evicted is unknown")
		}
		return err
	}
	pod, err := c.reader.Pod(ctx, name.namespace, name.name)
	if err != nil {
		return c.requestError(ctx, err)
	}
	if pod == nil {
		return cmdutil.NotFound("pod", name.String(), "it was deleted while the cluster was read; repeat the command", nil)
	}
	x.describe(pod)
	if eventsErr != nil && x.State == stateEvicted {
		c.env.Warn(eventsErr.Error() + ": the pod for which it was evicted is unknown")
	}
	if x.State == statePending {
		if err := c.whatWouldGo(ctx, live, d, found, x); err != nil {
			return err
		}
	}
	if err := live.Out().Show(x.document()); err != nil || x.WhatIf == nil {
		return err
	}
	return x.WhatIf.Conclude()
}

// readEvictions reads the events of preemptions of a pod.
func (c *cluster) readEvictions(ctx context.Context, d *kube.Dump, x *explanation) error {
	events, err := c.reader.Preemptions(ctx, x.Namespace, x.Pod)
	if err != nil {
		return err
	}
	for _, e := range events {
		one := eviction{Time: watch.EventTime(e).UTC(), Message: e.Message}
		if by := preemptor(d, e.Message); by != nil {
			one.By, one.Priority = nameOf(by).String(), new(by.PriorityValue())
		}
		x.Evictions = append(x.Evictions, one)
	}
	return nil
}

var preemptedBy = regexp.MustCompile(`^Preempted by (?:pod )?(\S+)`)

// preemptor returns the pod that the event of a preemption names, or nil if it does not
// exist any more. kube-scheduler writes the UID only: the preemptor may be in a namespace that
// is hidden from the reader of the event.
func preemptor(d *kube.Dump, message string) *kube.Pod {
	match := preemptedBy.FindStringSubmatch(message)
	if match == nil {
		return nil
	}
	i := slices.IndexFunc(d.Pods, func(p *kube.Pod) bool { return p.Metadata.UID == match[1] })
	if i < 0 {
		return nil
	}
	return d.Pods[i]
}

// describe sets the state of a pod that exists. A pod of the same name may have been
// evicted earlier, so that events alone do not determine the state.
func (x *explanation) describe(p *corev1.Pod) {
	x.Node, x.NominatedNode, x.Priority = p.Spec.NodeName, p.Status.NominatedNodeName, new(int32)
	if p.Spec.Priority != nil {
		*x.Priority = *p.Spec.Priority
	}
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) *corev1.PodCondition {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == status })
		if i < 0 {
			return nil
		}
		return &p.Status.Conditions[i]
	}
	x.Evictions = slices.DeleteFunc(x.Evictions, func(e eviction) bool { return e.Time.Before(p.CreationTimestamp.Time) })
	disrupted, unscheduled := condition(corev1.DisruptionTarget, corev1.ConditionTrue), condition(corev1.PodScheduled, corev1.ConditionFalse)
	switch {
	case disrupted != nil && disrupted.Reason == corev1.PodReasonPreemptionByScheduler:
		x.State, x.Message = stateEvicted, disrupted.Message
	case disrupted != nil:
		x.State, x.Message = stateDisrupted, disrupted.Reason+": "+disrupted.Message
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		x.State, x.Message = stateFinished, p.Status.Message
	case p.Spec.NodeName != "" && len(x.Evictions) > 0:
		x.State = stateEvicted // older schedulers set no condition
	case p.Spec.NodeName != "":
		x.State = stateOnNode
	case len(p.Spec.SchedulingGates) > 0:
		x.State = stateGated
		for _, gate := range p.Spec.SchedulingGates {
			x.Message += "scheduling gate " + gate.Name + " "
		}
	default:
		x.State = statePending
		if unscheduled != nil {
			x.Message = unscheduled.Message
		}
	}
}

// whatWouldGo schedules a pending pod on the cluster without it, together with the other
// pending pods of its PodGroup.
func (c *cluster) whatWouldGo(ctx context.Context, live *compare.Live, d *kube.Dump, p *kube.Pod, x *explanation) error {
	others := *d
	with := &kube.Dump{PodGroups: d.PodGroups, Devices: d.Devices}
	others.Pods = slices.DeleteFunc(slices.Clone(d.Pods), func(o *kube.Pod) bool {
		member := o == p || p.Group() != "" && o.Group() == p.Group() && o.Spec.NodeName == "" && o.Metadata.DeletionTimestamp == ""
		if member {
			with.Pods = append(with.Pods, o)
		}
		return member
	})
	f, err := c.scenario(&others)
	if err != nil {
		return err
	}
	return live.WithCallLog(func() error {
		x.WhatIf, err = live.WhatIf(ctx, f, nameOf(p).String(), with)
		return err
	})
}

func (x *explanation) document() cmdutil.Document {
	return cmdutil.Document{Data: x, Names: []string{podName{x.Namespace, x.Pod}.String()}, Page: x.page}
}

// page renders the explanation as text.
func (x *explanation) page(p cmdutil.Page) {
	name := podName{x.Namespace, x.Pod}.String()
	if x.Priority != nil {
		name += fmt.Sprintf(" (priority %d)", *x.Priority)
	}
	on := ""
	if x.Node != "" {
		on = " on node " + x.Node
	}
	switch x.State {
	case stateEvicted:
		p.Printf("%s was evicted%s for a pod of higher priority.\n", name, on)
	case stateDisrupted:
		p.Printf("%s is being removed%s, but not for a pod of higher priority.\n", name, on)
	case stateOnNode:
		p.Printf("%s is%s. It is neither pending nor evicted.\n", name, on)
	default:
		p.Printf("%s is %s.\n", name, x.State)
	}
	if x.Message != "" {
		p.Printf("Kubernetes reports: %s\n", x.Message)
	}
	if x.NominatedNode != "" {
		p.Printf("It waits for node %s, on which pods are leaving.\n", x.NominatedNode)
	}
	for i := range x.Evictions {
		e := &x.Evictions[i]
		by := e.By
		if by == "" {
			by = "a pod that does not exist any more"
		}
		if e.Priority != nil {
			by += fmt.Sprintf(" (priority %d)", *e.Priority)
		}
		p.Printf("%s  evicted for %s: %s\n", e.Time.Format(time.RFC3339), by, e.Message)
	}
	if x.WhatIf != nil {
		p.Printf("\n")
		x.WhatIf.Page(p)
		for i := range x.WhatIf.Policies {
			one := &x.WhatIf.Policies[i]
			for _, u := range one.Unplaced {
				p.Printf("\nUnder %s it stays pending: %s\n", one.Policy, u.Reason)
			}
		}
	}
}
