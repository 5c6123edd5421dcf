package controlplane

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// everything selects all objects.
var everything = metav1.ListOptions{}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func unlessPresent(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Node returns a node that is ready, with an amount of CPU.
func Node(name, cpu string) *corev1.Node {
	capacity := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now()}},
		},
	}
}

// Pod returns a pod with one container in the default namespace. class is the name of its
// priority class, as PriorityClass creates it. If node is not empty, the pod is bound.
func Pod(name, cpu, class, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, PriorityClassName: class,
			Containers: []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}},
		},
	}
}

// CreatePriorityClass creates the class p-VALUE, or n-VALUE for a negative value, unless
// it exists. It returns the name.
func (c *Cluster) CreatePriorityClass(t testing.TB, value int32) string {
	t.Helper()
	name := className(value)
	_, err := c.Client.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
	if unlessPresent(err) != nil {
		t.Fatal(err)
	}
	return name
}

// CreateNodes creates nodes and waits until the controllers have removed their taints.
func (c *Cluster) CreateNodes(t testing.TB, nodes ...*corev1.Node) {
	t.Helper()
	taints := map[string]int{}
	each(t, nodes, func(ctx context.Context, n *corev1.Node) error {
		if err := c.Kubelets.register(ctx, n.Name); err != nil {
			return err
		}
		_, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	})
	for _, n := range nodes {
		taints[n.Name] = len(n.Spec.Taints)
	}
	Eventually(t, "nodes are ready", func(ctx context.Context) string {
		list, err := c.Client.CoreV1().Nodes().List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if n := &list.Items[i]; len(n.Spec.Taints) > taints[n.Name] {
				return fmt.Sprintf("node %s has the taints %v", n.Name, n.Spec.Taints)
			}
		}
		return ""
	})
}

// CreatePods creates pods and waits until those with a node are running.
func (c *Cluster) CreatePods(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	each(t, pods, c.createPod)
	Eventually(t, "pods are running", func(ctx context.Context) string {
		list, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending"})
		if err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.Spec.NodeName != "" {
				return "pod " + p.Name + " is pending"
			}
		}
		return ""
	})
}

func (c *Cluster) createPod(ctx context.Context, p *corev1.Pod) error {
	return untilClassIsKnown(func() error {
		_, err := c.Client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		return err
	})
}

func (c *Cluster) createPodGroup(ctx context.Context, g *schedulingv1beta1.PodGroup) error {
	return untilClassIsKnown(func() error {
		_, err := c.Client.SchedulingV1beta1().PodGroups(g.Namespace).Create(ctx, g, metav1.CreateOptions{})
		return err
	})
}

// untilClassIsKnown repeats a request while it is forbidden: the API server learns of new
// priority classes by a watch of its own, and refuses objects that name them until then.
func untilClassIsKnown(create func() error) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := create(); !apierrors.IsForbidden(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// Reset removes all nodes, pods, budgets, claims, devices and pod groups.
func (c *Cluster) Reset(t testing.TB) {
	t.Helper()
	var now int64
	at := metav1.DeleteOptions{GracePeriodSeconds: &now}
	ctx := t.Context()
	namespaces, err := c.Client.CoreV1().Namespaces().List(ctx, everything)
	if err != nil {
		t.Fatal(err)
	}
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		if err := c.Client.CoreV1().Pods(name).DeleteCollection(ctx, at, everything); err != nil {
			t.Fatal(err)
		}
		if err := c.Client.PolicyV1().PodDisruptionBudgets(name).DeleteCollection(ctx, at, everything); err != nil {
			t.Fatal(err)
		}
		if err := c.Client.ResourceV1().ResourceClaims(name).DeleteCollection(ctx, at, everything); err != nil {
			t.Fatal(err)
		}
		if !c.podGroups {
			continue
		}
		if err := c.Client.SchedulingV1beta1().PodGroups(name).DeleteCollection(ctx, at, everything); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, at, everything); err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, everything)
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		c.Kubelets.unregister(nodes.Items[i].Name)
	}
	if err := c.Client.CoreV1().Nodes().DeleteCollection(ctx, at, everything); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the cluster is empty", func(ctx context.Context) string {
		list, err := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		if n := len(list.Items); n > 0 {
			return fmt.Sprintf("%d pods remain", n)
		}
		claims, err := c.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		if n := len(claims.Items); n > 0 { // until their controller has removed the finalizers
			return fmt.Sprintf("%d resource claims remain", n)
		}
		if !c.podGroups {
			return ""
		}
		groups, err := c.Client.SchedulingV1beta1().PodGroups(metav1.NamespaceAll).List(ctx, everything)
		if err != nil {
			return err.Error()
		}
		if n := len(groups.Items); n > 0 {
			return fmt.Sprintf("%d pod groups remain", n)
		}
		return ""
	})
}

// each calls do for all items, 16 at a time.
func each[T any](t testing.TB, items []T, do func(context.Context, T) error) {
	t.Helper()
	var wait sync.WaitGroup
	busy := make(chan struct{}, 16)
	errs := make(chan error, len(items))
	for _, item := range items {
		busy <- struct{}{}
		wait.Go(func() {
			defer func() { <-busy }()
			if err := do(t.Context(), item); err != nil {
				errs <- err
			}
		})
	}
	wait.Wait()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
}
