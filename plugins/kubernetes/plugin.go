package kubernetes

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/cede-scheduler/cede/core/kube/extender"
)

// Name is the name of the plugin in the configuration of kube-scheduler.
const Name = "Cede"

// A Plugin is DefaultPreemption with a policy that chooses nodes and victims.
type Plugin struct {
	*defaultpreemption.DefaultPreemption
	consultant *consultant
	groups     *groupPreemption // nil if pod groups are disabled
}

var (
	_ fwk.PostFilterPlugin         = (*Plugin)(nil)
	_ fwk.PreEnqueuePlugin         = (*Plugin)(nil)
	_ fwk.EnqueueExtensions        = (*Plugin)(nil)
	_ fwk.PodGroupPostFilterPlugin = (*Plugin)(nil)
)

// instances counts the plugins of the process: one for each profile. Their metrics have
// its number as label.
var instances atomic.Int64

// New returns a plugin. It is a PluginFactory of kube-scheduler. It returns an error if
// the arguments or the policy are invalid.
func New(ctx context.Context, configuration runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := readArgs(configuration)
	if err != nil {
		return nil, err
	}
	log := slog.New(logr.ToSlogHandler(klog.FromContext(ctx)))
	policies, err := loadPolicy(ctx, args, log)
	if err != nil {
		return nil, err
	}
	labels := prometheus.Labels{"instance_number": strconv.FormatInt(instances.Add(1), 10)}
	e, err := extender.New(extender.Config{
		Policies: policies, Live: true, Deadline: args.Deadline.Duration, EvictionDeadline: args.EvictionDeadline.Duration, Logger: log,
		Registry: prometheus.WrapRegistererWith(labels, legacyregistry.Registerer()),
	})
	if err != nil {
		return nil, err
	}
	informers := handle.SharedInformerFactory()
	c := &consultant{
		handle: handle, budgets: informers.Policy().V1().PodDisruptionBudgets().Lister(), extender: e,
		onFault: extender.OnFault(args.OnFault == "none"), log: log,
		deadline: args.EvictionDeadline.Duration, named: map[types.UID]time.Time{},
	}
	converted, err := watchPods(informers.Core().V1().Pods().Informer(), log, c.podChanged)
	if err != nil {
		return nil, err
	}
	c.mirror = newMirror(converted)
	if c.related, err = watchRelated(informers, utilfeature.DefaultFeatureGate, log, e.Feed); err != nil {
		return nil, err
	}
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	inner, err := defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{
		MinCandidateNodesPercentage: args.percentage(), MinCandidateNodesAbsolute: 100,
	}, &consultingHandle{handle, c}, features)
	if err != nil {
		return nil, err
	}
	c.dryRun = &dryRun{DefaultPreemption: inner, handle: handle}
	inner.Evaluator.PluginName, inner.Evaluator.Interface = Name, c.dryRun
	p := &Plugin{DefaultPreemption: inner, consultant: c}
	if features.EnableGenericWorkload {
		p.groups = newGroupPreemption(c, inner.Executor, features)
	}
	go c.warm(ctx, informers)
	return p, nil
}

// Name returns the name of the plugin.
func (p *Plugin) Name() string { return Name }

// PostFilter evicts pods so that the pod fits on a node.
func (p *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	//nolint:fatcontext // each cycle replaces the context of the previous one
	p.consultant.cycle.ctx, p.consultant.cycle.state, p.consultant.cycle.hopeless = ctx, state, false
	p.consultant.dryRun.reset()
	result, status := p.DefaultPreemption.PostFilter(ctx, state, pod, m)
	if p.consultant.cycle.hopeless { // as DefaultPreemption without a candidate: the pod loses its nomination
		return framework.NewPostFilterResultWithNominatedNode(""), fwk.NewStatus(fwk.Unschedulable, "preemption: Preemption is not helpful for scheduling")
	}
	return result, status
}

// A consultingHandle adds the policy to the extenders of kube-scheduler, as the last one:
// other extenders can exclude nodes before it.
type consultingHandle struct {
	fwk.Handle
	consultant *consultant
}

func (h *consultingHandle) Extenders() []fwk.Extender {
	configured := h.Handle.Extenders()
	return append(slices.Clip(configured), h.consultant)
}
