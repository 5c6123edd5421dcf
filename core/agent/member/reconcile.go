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

// reconcile starts missing workloads, stops surplus ones, and reports changes of
// status to the servers.
func (a *Agent) reconcile(ctx context.Context) error {
	states, all := a.desiredState()
	if len(states) == 0 { // without a list, no workload is surplus
		return nil
	}
	actual, err := a.c.Driver.Status(ctx)
	if err != nil {
		return fmt.Errorf("cannot read status from driver: %w", err)
	}
	decisions := &leaseDecisions{} // the zero value permits all workloads to run
	if a.leases != nil {
		if decisions, err = a.leases.reconcile(time.Now().UnixNano(), states, actual); err != nil {
			return err
		}
	}
	var errs []error
	for _, id := range decisions.stop {
		errs = append(errs, a.c.Driver.Stop(ctx, id))
	}
	listed := map[string]bool{}
	for i := range states {
		for _, as := range states[i].assignments {
			listed[as.ID] = true
		}
		errs = append(errs, a.reconcilePool(ctx, &states[i], actual, decisions))
	}
	for _, id := range slices.Sorted(maps.Keys(actual)) {
		if all && !listed[id] { // no pool has this assignment
			errs = append(errs, a.c.Driver.Stop(ctx, id))
		}
	}
	if decisions.changed {
		for _, p := range a.pools {
			p.wake()
		}
	}
	return errors.Join(errs...)
}

// reconcilePool reconciles the assignments of one pool.
func (a *Agent) reconcilePool(ctx context.Context, w *desired, actual map[string]Status, r *leaseDecisions) error {
	var errs []error
	var updates []client.AssignmentUpdate
	listed := map[string]*client.Assignment{}
	for _, as := range w.assignments {
		listed[as.ID] = as
	}
	for _, as := range w.assignments {
		status, exists := actual[as.ID]
		var u client.AssignmentUpdate
		var err error
		switch as.DesiredStatus {
		case client.DesiredClaim:
			continue
		case "run":
			u, err = a.run(ctx, as, status, exists, r.outcome(w.key(as.ID)))
		default:
			u, err = a.stop(ctx, as, status, exists || partRuns(as, listed, actual))
		}
		errs = append(errs, err)
		if isChanged(as, &u) {
			updates = append(updates, u)
		}
	}
	if len(updates) > 0 {
		_, err := w.pool.Servers.Update(ctx, a.c.Cluster, a.secret, updates)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// run starts or changes an assignment as far as its lease permits, and returns its status.
func (a *Agent) run(ctx context.Context, as *client.Assignment, status Status, exists bool, permitted outcome) (client.AssignmentUpdate, error) {
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
	case exists && status.Ready > 0:
		if u.ClientStatus = "running"; as.ClientStatus != u.ClientStatus {
			u.StartTime = time.Now().UnixNano()
		}
	}
	if permitted.decision != decisionRun {
		u.Description = permitted.text
		if permitted.decision == decisionReject {
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
func (a *Agent) stop(ctx context.Context, as *client.Assignment, status Status, isRunning bool) (client.AssignmentUpdate, error) {
	u := client.AssignmentUpdate{AssignmentID: as.ID, ClientStatus: "complete", Description: "stopped"}
	if !isRunning {
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
func partRuns(part *client.Assignment, listed map[string]*client.Assignment, actual map[string]Status) bool {
	whole := parentOf(part.ID)
	if whole == "" {
		return false
	}
	as, status := listed[whole], actual[whole]
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

// isChanged reports whether an update differs from the state of the servers.
func isChanged(as *client.Assignment, u *client.AssignmentUpdate) bool {
	return u.ClientStatus != as.ClientStatus || u.Ready != as.Ready || u.Description != as.ClientDescription
}
