// Package nomad implements the policy "nomad": the preemption of HashiCorp Nomad,
// reproduced from its documented and measured behaviour, so that its users can
// compare before they switch.
//
// On each option it follows the steps of Nomad's scheduler: the task network
// (bandwidth, which is the dimension named network, together with host ports), then
// each device request, then all other dimensions. Evictions of an earlier step count
// in later ones, each step ends with its own superset filter, and the list of victims
// is the concatenation. If a step cannot be satisfied, the option has no victims and
// the host drops it.
//
// The policy retains the quirks that determine the victims: redundant victims stay on
// the list, device filters ignore free instances, and the choice of a node hardly
// considers its victims. It does not reproduce the quirk that ignores the job's own
// allocations (the host computes need and free capacity), the sampling of nodes, and
// randomness: if Nomad depends on the order of a map, the policy uses the order of
// rows and options.
//
// It never lists a row twice. A Policy holds scratch memory and no other state; it
// must be used by one goroutine at a time.
package nomad
