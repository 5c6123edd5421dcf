package watch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// A LeaseConfig identifies a Lease and its candidate.
type LeaseConfig struct {
	Namespace, Name string
	// Identity is unique among the candidates.
	Identity string
	// Duration is the time after the last renewal at which other candidates acquire the
	// Lease.
	Duration time.Duration
}

// handover is the time between the acquisition of an existing Lease and the first
// answer: within it kube-scheduler acts on the last answer of the previous holder, and
// the watch reports that.
const handover = 2 * time.Second

// An Elector elects one of several replicas as leader, through a Lease.
//
// A holder renews the Lease at short intervals and leads until two thirds of Duration
// after the start of its last renewal. Other candidates acquire the Lease once they have
// seen it unchanged for the whole of Duration. Both compare readings of their own
// monotonic clock only, so that two replicas never lead at once, whatever the skew
// between their clocks. The package leaderelection of client-go was not used: it links
// every type of Kubernetes.
type Elector struct {
	client *rest.RESTClient
	config LeaseConfig
	log    *slog.Logger

	// Of the last version of the Lease that was seen. Run alone uses them.
	seen   string // resource version
	seenAt time.Time

	mu       sync.Mutex
	from, to time.Time // this process leads from one to the other
	holder   string    // identity of the last known holder; "" if released
}

// NewElector returns an Elector. It returns an error if the client cannot be
// configured. Run starts it.
func NewElector(c *rest.Config, config LeaseConfig, log *slog.Logger) (*Elector, error) {
	client, err := newClient(c, coordinationv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return &Elector{client: client, config: config, log: log}, nil
}

// Leads returns nil if this process is the leader, and otherwise an error that names the
// holder.
func (e *Elector) Leads() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !now.Before(e.from) && now.Before(e.to) {
		return nil
	}
	switch {
	case now.Before(e.to):
		return fmt.Errorf("lease %s/%s was acquired just now", e.config.Namespace, e.config.Name)
	case e.holder != "" && e.holder != e.config.Identity:
		return fmt.Errorf("lease %s/%s is held by %s", e.config.Namespace, e.config.Name, e.holder)
	}
	return fmt.Errorf("lease %s/%s is not held by this process", e.config.Namespace, e.config.Name)
}

// Run acquires and renews the Lease until the context is cancelled, and then releases it.
func (e *Elector) Run(ctx context.Context) {
	interval := e.config.Duration / 8
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var failure string
	for {
		attempt, cancel := context.WithTimeout(ctx, e.config.Duration/3)
		err := e.acquire(attempt)
		cancel()
		if text := errorText(err); text != failure && ctx.Err() == nil {
			if failure = text; err != nil {
				e.log.WarnContext(ctx, "lease not renewed", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			e.release(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// acquire acquires or renews the Lease, unless another candidate holds it.
func (e *Elector) acquire(ctx context.Context) error {
	began := time.Now()
	lease, err := e.get(ctx)
	if errors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.config.Namespace, Name: e.config.Name}}
		e.hold(lease)
		if err := e.client.Post().Namespace(e.config.Namespace).Resource("leases").Body(lease).Do(ctx).Error(); err != nil {
			return err
		}
		e.lead(began, began)
		return nil
	}
	if err != nil {
		return err
	}
	if lease.ResourceVersion != e.seen {
		e.seen, e.seenAt = lease.ResourceVersion, time.Now()
	}
	holder := valueOr(lease.Spec.HolderIdentity, "")
	if isOther := holder != "" && holder != e.config.Identity; isOther && time.Since(e.seenAt) < leaseDuration(lease) {
		e.follow(holder)
		return nil
	}
	e.hold(lease)
	if err := e.put(ctx, lease); err != nil {
		return err
	}
	from := began
	if holder != e.config.Identity {
		from = began.Add(handover)
	}
	e.lead(began, from)
	return nil
}

// leaseDuration returns how long the holder of a Lease may go without renewing it.
func leaseDuration(l *coordinationv1.Lease) time.Duration {
	return time.Duration(valueOr(l.Spec.LeaseDurationSeconds, 0)) * time.Second
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// hold enters this process as the holder.
func (e *Elector) hold(l *coordinationv1.Lease) {
	now := metav1.NewMicroTime(time.Now())
	if valueOr(l.Spec.HolderIdentity, "") != e.config.Identity {
		l.Spec.AcquireTime, l.Spec.LeaseTransitions = &now, new(valueOr(l.Spec.LeaseTransitions, -1)+1)
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &e.config.Identity, &now
	l.Spec.LeaseDurationSeconds = new(int32((e.config.Duration + time.Second - 1) / time.Second)) //nolint:gosec // G115: at most an hour
}

// lead records a renewal that began at a time. A process that was the leader remains the leader.
func (e *Elector) lead(began, from time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !began.Before(e.to) { // it did not lead
		e.from = from
		e.log.Info("lease acquired", "namespace", e.config.Namespace, "lease", e.config.Name)
	}
	e.holder, e.to = e.config.Identity, began.Add(e.config.Duration*2/3)
}

// follow records that another candidate holds the Lease.
func (e *Elector) follow(holder string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.holder, e.to = holder, time.Time{}
}

// release gives up the Lease, so that another candidate acquires it at once.
func (e *Elector) release(ctx context.Context) {
	e.mu.Lock()
	held := time.Now().Before(e.to)
	e.to = time.Time{}
	e.mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.config.Duration/3)
	defer cancel()
	lease, err := e.get(ctx)
	if err == nil && valueOr(lease.Spec.HolderIdentity, "") == e.config.Identity {
		lease.Spec.HolderIdentity = new("")
		err = e.put(ctx, lease)
	}
	if err != nil {
		e.log.WarnContext(ctx, "lease not released", "err", err)
	}
}

func (e *Elector) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, e.client.Get().Namespace(e.config.Namespace).Resource("leases").Name(e.config.Name).Do(ctx).Into(lease)
}

// put replaces the Lease. It fails if the Lease was changed since it was read.
func (e *Elector) put(ctx context.Context, l *coordinationv1.Lease) error {
	return e.client.Put().Namespace(e.config.Namespace).Resource("leases").Name(e.config.Name).Body(l).Do(ctx).Error()
}
