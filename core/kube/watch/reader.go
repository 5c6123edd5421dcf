package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/cede-scheduler/cede/core/kube"
)

// A RequestError is a request that the API server did not serve.
type RequestError struct {
	Verb, Resource string // the permission that the request needs; Resource has the form NAME.GROUP
	Err            error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("cannot %s %s: %v", e.Verb, e.Resource, e.Err)
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// A Reader reads the objects of a cluster once, without a watch. It is safe for
// concurrent use.
type Reader struct {
	clients map[schema.GroupVersion]*rest.RESTClient
	clock   *serverClock
}

// NewReader returns a Reader. It returns an error if the client cannot be configured.
func NewReader(c *rest.Config) (*Reader, error) {
	r := &Reader{clients: map[schema.GroupVersion]*rest.RESTClient{}, clock: &serverClock{}}
	c = rest.CopyConfig(c)
	c.Wrap(r.clock.wrap)
	for _, k := range resources {
		if r.clients[k.group] != nil {
			continue
		}
		client, err := newClient(c, k.group)
		if err != nil {
			return nil, fmt.Errorf("client of the API server: %w", err)
		}
		r.clients[k.group] = client
	}
	return r, nil
}

// Dump lists everything that a Watcher watches, with the time of the API server. The error joins a RequestError for
// each resource that cannot be listed.
func (r *Reader) Dump(ctx context.Context) (*kube.Dump, error) {
	lists, errs := make([][]any, len(resources)), make([]error, len(resources))
	var running sync.WaitGroup
	for i, k := range resources {
		running.Go(func() {
			errs[i] = r.list(ctx, k, metav1.NamespaceAll, fields.Everything(), func(o runtime.Object) error {
				stripped, err := strip(o)
				if err == nil {
					lists[i] = append(lists[i], valueOf(stripped))
				}
				return err
			})
			if k.optional && apierrors.IsNotFound(errs[i]) {
				errs[i] = nil // the API server does not serve it
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &kube.Dump{Time: r.clock.now()}
	for _, list := range lists {
		for _, value := range list {
			Add(d, value)
		}
	}
	return d, nil
}

// Pod returns a pod, or nil if it does not exist.
func (r *Reader) Pod(ctx context.Context, namespace, name string) (pod *corev1.Pod, err error) {
	k := kindSpec{"pods", corev1.SchemeGroupVersion, nil, false}
	err = r.list(ctx, k, namespace, fields.OneTermEqualSelector("metadata.name", name), func(o runtime.Object) error {
		pod, _ = o.(*corev1.Pod)
		return nil
	})
	return pod, err
}

// Preemptions returns the events of preemptions of a pod, the newest first. The pod need
// not exist any more: the API server stores events for an hour by default.
func (r *Reader) Preemptions(ctx context.Context, namespace, pod string) (list []*corev1.Event, err error) {
	k := kindSpec{"events", corev1.SchemeGroupVersion, nil, false}
	selector := fields.Set{"involvedObject.kind": "Pod", "involvedObject.name": pod, "reason": "Preempted"}.AsSelector()
	err = r.list(ctx, k, namespace, selector, func(o runtime.Object) error {
		if e, ok := o.(*corev1.Event); ok {
			list = append(list, e)
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b *corev1.Event) int { return EventTime(b).Compare(EventTime(a).Time) })
	return list, err
}

// EventTime returns the time at which an event was last observed.
func EventTime(e *corev1.Event) metav1.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time(e.EventTime)
	}
	return e.CreationTimestamp
}

// list calls visit with each object of a resource, in pages.
func (r *Reader) list(ctx context.Context, k kindSpec, namespace string, selector fields.Selector, visit func(runtime.Object) error) error {
	lister := cache.NewListWatchFromClient(r.clients[k.group], k.name, namespace, selector)
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lister.ListWithContext(ctx, o)
	})
	if err := pages.EachListItem(ctx, metav1.ListOptions{}, visit); err != nil {
		return &RequestError{Verb: "list", Resource: strings.TrimSuffix(k.name+"."+k.group.Group, "."), Err: err}
	}
	return nil
}
