package client

import (
	"context"
	"net/http"
)

// Scheduler holds the calls for the scheduler configuration; see Client.Scheduler.
type Scheduler struct{ c *Client }

// Get returns the configuration.
func (s Scheduler) Get(ctx context.Context, q *QueryOptions) (*SchedulerConfiguration, *QueryMeta, error) {
	out := &SchedulerConfigurationResponse{}
	meta, err := s.c.get(ctx, q, out, "scheduler", "configuration")
	return out.SchedulerConfig, meta, err
}

// Set writes the configuration; a nil field returns to its default. With check, it is
// written only if its ModifyIndex equals check; otherwise Updated is false.
func (s Scheduler) Set(ctx context.Context, conf *SchedulerConfiguration, check *uint64) (*SchedulerSetConfigurationResponse, error) {
	r, err := s.c.call(http.MethodPut, "scheduler", "configuration").json(wholeConfiguration(conf))
	if err != nil {
		return nil, err
	}
	out := &SchedulerSetConfigurationResponse{}
	_, err = r.check(check).do(ctx, out)
	return out, err
}

// wholeConfiguration returns a configuration that encodes nil fields as null, because
// the server leaves absent fields unchanged.
func wholeConfiguration(c *SchedulerConfiguration) any {
	type gates struct {
		PriorityBasedScheduling           *bool
		PriorityBasedPreemptiveScheduling *bool
		StrictPriorityClasses             *bool
	}
	return &struct {
		*SchedulerConfiguration
		PriorityDelta *int
		Coalescing    *bool
		Shedding      *bool
		Moves         *Moves
		FeatureGates  gates
	}{c, c.PriorityDelta, c.Coalescing, c.Shedding, c.Moves, gates(c.FeatureGates)}
}

// PlanRebalance returns the moves that would make room for jobs that wait, and changes
// nothing. moves limits how many instances of one job are moved; nil: as configured, or one
// in an hour.
func (s Scheduler) PlanRebalance(ctx context.Context, moves *Moves) (*RebalancePlan, error) {
	out := &RebalancePlan{}
	return out, s.c.write(ctx, http.MethodPost, nil, true, &RebalancePlanRequest{Moves: moves}, out, "rebalance", "plan")
}

// Rebalance commits the steps that a token of PlanRebalance contains. Steps that no longer hold
// are reported. It returns a conflict if none holds.
func (s Scheduler) Rebalance(ctx context.Context, token string) (*RebalanceResult, error) {
	out := &RebalanceResult{}
	return out, s.c.write(ctx, http.MethodPost, nil, false, &RebalanceRequest{PlanToken: token}, out, "rebalance")
}

// PriorityClasses holds the calls for priority classes; see Client.PriorityClasses.
type PriorityClasses struct{ c *Client }

// List lists priority classes, ascending by name.
func (p PriorityClasses) List(ctx context.Context, q *QueryOptions) (list []*PriorityClass, meta *QueryMeta, err error) {
	meta, err = p.c.get(ctx, q, &list, "priority-classes")
	return list, meta, err
}

// Get returns a priority class.
func (p PriorityClasses) Get(ctx context.Context, name string, q *QueryOptions) (*PriorityClass, *QueryMeta, error) {
	out := &PriorityClass{}
	meta, err := p.c.get(ctx, q, out, "priority-class", name)
	return out, meta, err
}

// Put creates or changes a priority class.
func (p PriorityClasses) Put(ctx context.Context, class *PriorityClass) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, p.c.write(ctx, http.MethodPut, nil, true, class, out, "priority-class", class.Name)
}

// Delete deletes a priority class. Jobs keep the priority that it defined.
func (p PriorityClasses) Delete(ctx context.Context, name string) (*IndexResponse, error) {
	out := &IndexResponse{}
	return out, p.c.write(ctx, http.MethodDelete, nil, true, nil, out, "priority-class", name)
}
