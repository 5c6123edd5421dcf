package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/cede-scheduler/cede/core/kube"
	"github.com/cede-scheduler/cede/core/kube/watch"
)

// relatedObjects passes the objects that pods refer to from informers to the extender: pod
// groups and resource claims, with the devices that claims request. They are in no
// snapshot of kube-scheduler.
type relatedObjects struct {
	log       *slog.Logger
	informers []cache.SharedIndexInformer
	feed      func(d *kube.Dump, whole bool)

	mu  sync.Mutex // held while feed is called, so that changes arrive in their order
	fed bool       // feedAll was called
}

// watchRelated watches the kinds that the feature gates of kube-scheduler enable. The API
// server may not serve the others, and kube-scheduler would wait for them. All are permitted
// by the role system:kube-scheduler; ResourceClaimTemplates are not, and the claims of a pod
// exist before it is scheduled.
func watchRelated(from informers.SharedInformerFactory, gates featuregate.FeatureGate, log *slog.Logger, feed func(d *kube.Dump, whole bool)) (*relatedObjects, error) {
	r := &relatedObjects{log: log, feed: feed}
	if gates.Enabled(features.GenericWorkload) {
		r.informers = append(r.informers, from.Scheduling().V1beta1().PodGroups().Informer())
	}
	if gates.Enabled(features.DynamicResourceAllocation) {
		devices := from.Resource().V1()
		r.informers = append(r.informers, devices.DeviceClasses().Informer(), devices.ResourceSlices().Informer(), devices.ResourceClaims().Informer())
	}
	var errs []error
	for _, i := range r.informers {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { r.changed(o, false) },
			UpdateFunc: func(_, o any) { r.changed(o, false) },
			DeleteFunc: func(o any) { r.changed(o, true) },
		})
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

// feedAll feeds a dump of the whole cluster, to which it adds the objects. Changes are fed
// from then on; until then the informers hold them.
func (r *relatedObjects) feedAll(d *kube.Dump) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.informers {
		for _, o := range i.GetStore().List() {
			value, err := convert(o)
			if err != nil {
				return err
			}
			watch.Add(d, value)
		}
	}
	r.feed(d, true)
	r.fed = true
	return nil
}

// changed feeds one change.
func (r *relatedObjects) changed(o any, deleted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fed {
		return
	}
	value, err := convert(o)
	if err != nil {
		r.log.Error("object cannot be converted", "err", err)
		return
	}
	d := &kube.Dump{}
	if deleted {
		d.Deleted = []any{value}
	} else {
		watch.Add(d, value)
	}
	r.feed(d, false)
}

// hasSynced returns the functions that report whether the informers hold all objects.
func (r *relatedObjects) hasSynced() (list []cache.InformerSynced) {
	for _, i := range r.informers {
		list = append(list, i.HasSynced)
	}
	return list
}

// convert returns an object of an informer as an object of package kube.
func convert(o any) (any, error) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	object, ok := o.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("unexpected object %T", o)
	}
	return watch.Convert(object)
}
