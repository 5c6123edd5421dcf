// Package scheduler turns one evaluation and one snapshot into a plan: it
// compares what a job wants with what there is, finds nodes that may take what
// is missing, ranks those that have room, asks core/preempt where none has, and
// explains whatever it could not place.
//
// Evaluations of bindings take a path of their own (binding.go): what fits is
// assigned to member clusters whole or not at all; what does not has others evicted
// from one cluster, or where the policy says so from several together, and claims
// their room, which it is assigned once it is free.
//
// A job that is placed all at once has a search of its own (gang.go), which is bounded
// and says where the bound ended it.
//
// It is a pure function of evaluation, snapshot, policies and time. It writes
// nothing, and it places nothing on its own: a plan is a proposal that
// core/planner checks against newer state, for which it asks CommitRules about
// rules between allocations.
//
// core/worker calls it, in servers and in the simulator alike. A Scheduler
// serves one goroutine at a time; its buffers and its memory of failed groups
// are kept between evaluations and change no plan. What is said of a group that
// was remembered as failed tells how its nodes were when they were last looked at.
package scheduler
