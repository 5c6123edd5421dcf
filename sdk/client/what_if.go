package client

import "context"

// WhatIf lists the smallest changes under which a decision would have spared a victim. Each
// was executed: the decision was made again with it, on the state and at the time of then.
type WhatIf struct {
	Index   uint64   // of the decision
	EvalID  string   // that decided
	Text    []string // in words
	Victim  WhatIfRef
	By      WhatIfRef      // the job or the binding that was placed
	Changes []WhatIfChange // at most one for each priority, time, and requested resource
	Next    []WhatIfRef    // victims instead, if the victim could not be evicted
	Waiting int            // instances or replicas more that would wait in that case
	// Evaluations is how often the decision was made.
	Evaluations int
}

// WhatIfRef describes an allocation, or replicas of a binding. If the caller may not read its
// namespace, it is not identified.
type WhatIfRef struct {
	AllocID   string `json:",omitempty"`
	Name      string
	Namespace string `json:",omitempty"`
	JobID     string `json:",omitempty"`
	NodeID    string `json:",omitempty"` // or that of a cluster
	Priority  int
}

// WhatIfChange is a change with its effect. Smaller ones of the same kind have none.
type WhatIfChange struct {
	Kind       string // higher-priority, later or smaller-request
	Text       string // in words, to follow "would have stayed"
	Priority   int    `json:",omitempty"` // to add to that of the victim's job or binding
	Later      int64  `json:",omitempty"` // ns
	Checkpoint bool   `json:",omitempty"` // the victim has passed a checkpoint by then
	Group      string `json:",omitempty"` // that requests less
	Resource   string `json:",omitempty"`
	Amount     int64  `json:",omitempty"` // that is requested instead of Of
	Of         int64  `json:",omitempty"`
	Instead    []WhatIfRef
	Waiting    int // instances or replicas more that would wait
}

// WhatIf returns the smallest changes that would have spared an evicted allocation, or the
// replicas of a binding with this ID. The server makes the decision again up to 64 times.
func (a Allocations) WhatIf(ctx context.Context, id string, q *QueryOptions) (out *WhatIf, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &out, "allocation", id, "what-if")
	return out, meta, err
}
