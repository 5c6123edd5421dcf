package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/cede-scheduler/cede/core/kube"
)

// A Sink receives the objects of the cluster: once all of them (whole is true), then
// changes. It must not retain the dump. Calls are serialised.
type Sink interface {
	Feed(d *kube.Dump, whole bool)
}

// A kindSpec is a kind of object that is watched.
type kindSpec struct {
	name    string
	group   schema.GroupVersion
	example runtime.Object
	// optional is set if clusters may not serve the resource: older ones, and those in
	// which it is not enabled.
	optional bool
}

// resources lists what is watched, and therefore the permissions that a Watcher needs:
// list and watch of each.
var resources = []kindSpec{
	{"nodes", corev1.SchemeGroupVersion, &corev1.Node{}, false},
	{"pods", corev1.SchemeGroupVersion, &corev1.Pod{}, false},
	{"namespaces", corev1.SchemeGroupVersion, &corev1.Namespace{}, false},
	{"poddisruptionbudgets", policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudget{}, false},
	{"priorityclasses", schedulingv1.SchemeGroupVersion, &schedulingv1.PriorityClass{}, false},
	{"podgroups", schedulingv1beta1.SchemeGroupVersion, &schedulingv1beta1.PodGroup{}, true},
	{"deviceclasses", resourcev1.SchemeGroupVersion, &resourcev1.DeviceClass{}, true},
	{"resourceslices", resourcev1.SchemeGroupVersion, &resourcev1.ResourceSlice{}, true},
	{"resourceclaims", resourcev1.SchemeGroupVersion, &resourcev1.ResourceClaim{}, true},
	{"resourceclaimtemplates", resourcev1.SchemeGroupVersion, &resourcev1.ResourceClaimTemplate{}, true},
}

// A Watcher follows a cluster.
type Watcher struct {
	sink Sink
	log  *slog.Logger

	informers  []*informer
	connection *connection

	mu     sync.Mutex
	synced bool // the sink has received the whole cluster
}

// An informer watches one resource.
type informer struct {
	cache.SharedIndexInformer
	kindSpec
	client *rest.RESTClient
	absent chan struct{} // closed if the API server does not serve the resource

	mu  sync.Mutex
	err error // of the last list or watch; nil after an event
}

// New returns a Watcher. It returns an error if the client cannot be configured. Run
// starts it.
func New(c *rest.Config, sink Sink, log *slog.Logger) (*Watcher, error) {
	w := &Watcher{sink: sink, log: log, connection: &connection{log: log}}
	c = rest.CopyConfig(c)
	c.Wrap(w.connection.wrap)
	clients := map[schema.GroupVersion]*rest.RESTClient{}
	for _, r := range resources {
		if clients[r.group] == nil {
			client, err := newClient(c, r.group)
			if err != nil {
				return nil, fmt.Errorf("client of the API server: %w", err)
			}
			clients[r.group] = client
		}
		i, err := w.newInformer(clients[r.group], r)
		if err != nil {
			return nil, err
		}
		w.informers = append(w.informers, i)
	}
	return w, nil
}

// newClient returns a client of one API group. The clients of client-go for all groups
// would link every type of Kubernetes.
func newClient(c *rest.Config, group schema.GroupVersion) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, schedulingv1.AddToScheme, schedulingv1beta1.AddToScheme, resourcev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	one := rest.CopyConfig(c)
	one.APIPath = "/apis"
	if group.Group == "" {
		one.APIPath = "/api"
	}
	one.GroupVersion = &group
	one.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	one.ContentType = runtime.ContentTypeJSON // of Leases, the only objects that are written
	one.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return rest.RESTClientFor(one)
}

func (w *Watcher) newInformer(client *rest.RESTClient, r kindSpec) (*informer, error) {
	source := cache.ToListWatcherWithWatchListSemantics(cache.NewListWatchFromClient(client, r.name, metav1.NamespaceAll, fields.Everything()), client)
	i := &informer{SharedIndexInformer: cache.NewSharedIndexInformer(source, r.example, 0, cache.Indexers{}), kindSpec: r, client: client, absent: make(chan struct{})}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.changed(i, o) },
		UpdateFunc: func(_, o any) { w.changed(i, o) },
		DeleteFunc: func(o any) { w.deleted(i, o) },
	})
	return i, errors.Join(err, i.SetTransform(strip), i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		i.setError(err)
		w.log.WarnContext(ctx, "kubernetes watch interrupted", "resource", i.name, "err", err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}))
}

func (i *informer) setError(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

// Run watches the cluster until the context is cancelled. It returns after all its
// goroutines have ended.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, i := range w.informers {
		running.Go(func() {
			if i.awaitServed(ctx) {
				i.RunWithContext(ctx)
			}
		})
	}
	for _, i := range w.informers {
		select {
		case <-ctx.Done():
			return
		case <-i.absent:
		case <-i.HasSyncedChecker().Done():
		}
	}
	w.feedAll()
	<-ctx.Done()
}

// discoveryInterval is the time between two attempts to read which resources the API
// server serves.
const discoveryInterval = time.Second

// awaitServed reports whether the API server serves the resource, as soon as it answers. An
// optional resource that it does not serve has no objects.
func (i *informer) awaitServed(ctx context.Context) bool {
	for i.optional {
		served, err := i.isServed(ctx)
		switch {
		case err == nil && served:
			return true
		case err == nil:
			close(i.absent)
			return false
		}
		i.setError(err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(discoveryInterval):
		}
	}
	return true
}

// isServed reports whether the API server lists the resource in its API group.
func (i *informer) isServed(ctx context.Context) (bool, error) {
	text, err := i.client.Get().AbsPath("/apis", i.group.Group, i.group.Version).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == i.name }), nil
}

// isAbsent reports whether the API server does not serve the resource.
func (i *informer) isAbsent() bool {
	select {
	case <-i.absent:
		return true
	default:
		return false
	}
}

// feedAll passes the whole cluster to the sink. Until then events are dropped, because
// the stores of the informers are at least as new. Events that arrive afterwards may
// be older than the stores; the latest event of an object arrives last.
func (w *Watcher) feedAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &kube.Dump{}
	for _, i := range w.informers {
		for _, o := range i.GetStore().List() {
			Add(d, valueOf(o))
		}
	}
	w.sink.Feed(d, true)
	w.synced = true
	w.log.Info("kubernetes objects synced", "nodes", len(d.Nodes), "pods", len(d.Pods))
}

func (w *Watcher) changed(i *informer, o any) {
	i.setError(nil)
	w.apply(func(d *kube.Dump) { Add(d, valueOf(o)) })
}

func (w *Watcher) deleted(i *informer, o any) {
	i.setError(nil)
	if value := valueOf(o); value != nil {
		w.apply(func(d *kube.Dump) { d.Deleted = []any{value} })
	}
}

// apply passes one change to the sink.
func (w *Watcher) apply(change func(*kube.Dump)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.synced {
		return
	}
	d := &kube.Dump{}
	change(d)
	w.sink.Feed(d, false)
}

// Reachable reports whether the API server answered the last request. Otherwise the objects in the
// sink may be out of date.
func (w *Watcher) Reachable() bool { return w.connection.reachable() }

// Ready returns nil if the sink has received the whole cluster, and otherwise an error
// that names each missing resource and the reason.
func (w *Watcher) Ready() error {
	w.mu.Lock()
	synced := w.synced
	w.mu.Unlock()
	if synced {
		return nil
	}
	var missing []string
	for _, i := range w.informers {
		if i.HasSynced() || i.isAbsent() {
			continue
		}
		i.mu.Lock()
		if text := i.name; i.err != nil {
			missing = append(missing, text+" ("+i.err.Error()+")")
		} else {
			missing = append(missing, text)
		}
		i.mu.Unlock()
	}
	if len(missing) == 0 {
		return errors.New("objects are being stored")
	}
	slices.Sort(missing)
	return fmt.Errorf("not synced: %s", strings.Join(missing, ", "))
}
