package watch

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/dra"
)

// An object is what the informers store instead of the API object: the fields that
// affect scheduling, and the metadata that informers read. The sink shares value.
type object struct {
	metav1.ObjectMeta     // name, namespace, UID and resource version only
	value             any // *kube.Node, *kube.Pod, …
}

// Convert returns an API object as an object of package kube, *kube.Pod for a pod. o is
// not modified. It returns an error for kinds that a Watcher does not watch.
func Convert(o runtime.Object) (any, error) {
	stripped, err := strip(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	value := valueOf(stripped)
	if value == nil {
		return nil, fmt.Errorf("convert %T: unsupported kind", o)
	}
	return value, nil
}

// strip converts API objects to objects of package kube, which bounds the memory of
// the informers. It returns other values unchanged: client-go may call it again for
// its result.
func strip(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Pod:
		stripPod(o)
		return convert[kube.Pod](&o.ObjectMeta, o)
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
		return convert[kube.Node](&o.ObjectMeta, o)
	case *policyv1.PodDisruptionBudget:
		return convert[kube.Budget](&o.ObjectMeta, o)
	case *schedulingv1.PriorityClass:
		return convert[kube.PriorityClass](&o.ObjectMeta, o)
	case *corev1.Namespace:
		return convert[kube.Namespace](&o.ObjectMeta, o)
	case *schedulingv1beta1.PodGroup:
		return convert[kube.PodGroup](&o.ObjectMeta, o)
	case *resourcev1.DeviceClass:
		return convert[dra.Class](&o.ObjectMeta, o)
	case *resourcev1.ResourceSlice:
		return convert[dra.Slice](&o.ObjectMeta, o)
	case *resourcev1.ResourceClaim:
		return convert[dra.Claim](&o.ObjectMeta, o)
	case *resourcev1.ResourceClaimTemplate:
		return convert[dra.Template](&o.ObjectMeta, o)
	}
	return o, nil
}

// convert translates an API object through JSON, the form in which package kube reads
// it everywhere else.
func convert[T any](meta *metav1.ObjectMeta, o any) (any, error) {
	meta.ManagedFields = nil
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", meta.Name, err)
	}
	value := new(T)
	if err := json.Unmarshal(text, value); err != nil {
		return nil, fmt.Errorf("decode %s: %w", meta.Name, err)
	}
	return &object{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion},
		value:      value,
	}, nil
}

// stripPod removes the large fields of a pod that package kube does not read, before
// they are encoded.
func stripPod(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			list[i] = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		v.Secret, v.ConfigMap, v.Projected, v.DownwardAPI, v.EmptyDir, v.HostPath = nil, nil, nil, nil, nil, nil
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		p.Status.ContainerStatuses[i] = corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources}
	}
	p.Spec.EphemeralContainers, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses = nil, nil, nil
}

// valueOf returns the converted object of an event, or nil if it cannot be converted.
func valueOf(o any) any {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if o, ok := o.(*object); ok {
		return o.value
	}
	return nil
}

// Add adds an object that Convert returned to a dump.
func Add(d *kube.Dump, value any) {
	switch o := value.(type) {
	case *kube.Node:
		d.Nodes = append(d.Nodes, o)
	case *kube.Pod:
		d.Pods = append(d.Pods, o)
	case *kube.Budget:
		d.Budgets = append(d.Budgets, o)
	case *kube.PriorityClass:
		d.Classes = append(d.Classes, o)
	case *kube.Namespace:
		d.Namespaces = append(d.Namespaces, o)
	case *kube.PodGroup:
		d.PodGroups = append(d.PodGroups, o)
	case *dra.Class:
		d.Devices.Classes = append(d.Devices.Classes, o)
	case *dra.Slice:
		d.Devices.Slices = append(d.Devices.Slices, o)
	case *dra.Claim:
		d.Devices.Claims = append(d.Devices.Claims, o)
	case *dra.Template:
		d.Devices.Templates = append(d.Devices.Templates, o)
	}
}
