package member

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// reconcile starts missing workloads, stops unwanted ones, and reports changes of
// status to the servers.
func (a *Agent) reconcile(ctx context.Context) error {
	wishes, all := a.desiredState()
	if len(wishes) == 0 { // nothing is known to be unwanted
		return nil
	}
	there, err := a.c.Driver.Status(ctx)
	if err != nil {
		return fmt.Errorf("cannot read status from driver: %w", err)
	}
	rulings := &leaseDecisions{} // the zero value permits everything
	if a.leases != nil {
		if rulings, err = a.leases.reconcile(time.Now().UnixNano(), wishes, there); err != nil {
			return err
		}
	}
	var errs []error
	for _, id := range rulings.stop {
		errs = append(errs, a.c.Driver.Stop(ctx, id))
	}
	listed := map[string]bool{}
	for i := range wishes {
		for _, as := range wishes[i].wanted {
			listed[as.ID] = true
		}
		errs = append(errs, a.reconcilePool(ctx, &wishes[i], there, rulings))
	}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		if all && !listed[id] { // no pool has this assignment
			errs = append(errs, a.c.Driver.Stop(ctx, id))
		}
	}
	if rulings.changed {
		for _, p := range a.pools {
			p.wake()
		}
	}
	return errors.Join(errs...)
}

// reconcilePool reconciles the assignments of one pool.
func (a *Agent) reconcilePool(ctx context.Context, w *desired, there map[string]Status, r *leaseDecisions) error {
	var errs []error
	var news []client.AssignmentUpdate
	listed := map[string]*client.Assignment{}
	for _, as := range w.wanted {
		listed[as.ID] = as
	}
	for _, as := range w.wanted {
		status, known := there[as.ID]
		var u client.AssignmentUpdate
		var err error
		switch as.DesiredStatus {
		case client.DesiredClaim:
			continue
		case "run":
			u, err = a.run(ctx, as, status, known, r.outcome(w.key(as.ID)))
		default:
			u, err = a.stop(ctx, as, status, known || partRuns(as, listed, there))
		}
		errs = append(errs, err)
		if isNews(as, &u) {
			news = append(news, u)
		}
	}
	if len(news) > 0 {
		_, err := w.pool.Servers.Update(ctx, a.c.Cluster, a.secret, news)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// run starts or changes an assignment as far as its lease permits, and returns its status.
func (a *Agent) run(ctx context.Context, as *client.Assignment, status Status, known bool, may outcome) (client.AssignmentUpdate, error) {
	u := client.AssignmentUpdate{AssignmentID: as.ID, ClientStatus: "pending", Ready: status.Ready, Description: status.Text}
	switch {
	case status.Complete:
		u.ClientStatus, u.Ready = "complete", 0
		return u, nil
	case status.Failed:
		u.ClientStatus, u.Ready = "failed", 0
		return u, nil
	case as.Binding == nil: // the binding was deleted, so the workload is unknown
		return u, nil
	case known && status.Ready > 0:
		if u.ClientStatus = "running"; as.ClientStatus != u.ClientStatus {
			u.StartTime = time.Now().UnixNano()
		}
	}
	if may.decision != decisionRun {
		u.Description = may.text
		if may.decision == decisionReject {
			u.ClientStatus, u.Ready = "failed", 0
		}
		return u, nil
	}
	if err := a.c.Driver.Run(ctx, workloadOf(as)); err != nil {
		u.Description = err.Error()
		return u, fmt.Errorf("assignment %s: %w", as.ID, err)
	}
	return u, nil
}

// stop stops an assignment and returns its status.
func (a *Agent) stop(ctx context.Context, as *client.Assignment, status Status, lives bool) (client.AssignmentUpdate, error) {
	u := client.AssignmentUpdate{AssignmentID: as.ID, ClientStatus: "complete", Description: "stopped"}
	if !lives {
		return u, nil
	}
	u.ClientStatus, u.Ready, u.Description = as.ClientStatus, status.Ready, "stopping"
	if parentOf(as.ID) != "" { // the parent assignment stops it
		return u, nil
	}
	if err := a.c.Driver.Stop(ctx, as.ID); err != nil {
		u.Description = err.Error()
		return u, fmt.Errorf("assignment %s: %w", as.ID, err)
	}
	return u, nil
}

// partRuns reports whether replicas that were removed from an assignment, and stop as
// a part with its own ID, still run. They do as long as more replicas run under the
// parent's ID than it should have.
func partRuns(part *client.Assignment, listed map[string]*client.Assignment, there map[string]Status) bool {
	whole := parentOf(part.ID)
	if whole == "" {
		return false
	}
	as, status := listed[whole], there[whole]
	return as != nil && status.Held > as.Replicas
}

// parentOf returns the ID of the assignment that a part was removed from, or "" if id is not a part.
func parentOf(id string) string {
	whole, _, found := strings.Cut(id, "/less/")
	if !found {
		return ""
	}
	return whole
}

// isNews reports whether an update differs from the state of the servers.
func isNews(as *client.Assignment, u *client.AssignmentUpdate) bool {
	return u.ClientStatus != as.ClientStatus || u.Ready != as.Ready || u.Description != as.ClientDescription
}
