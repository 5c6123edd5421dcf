// Package nomad owns the policy named nomad: whom HashiCorp Nomad would evict,
// reproduced from its documented and measured behaviour, so that its users can
// compare before they switch.
//
// On each option it takes the steps of Nomad's scheduler in their order: the
// task network (bandwidth, which is the dimension named network, together with
// host ports), then each device request, then all other dimensions. What an
// earlier step evicts counts for the later ones, each step ends with its own
// superset filter, and the list of victims is the concatenation. A step that
// cannot be satisfied leaves the option without victims, and the host drops it.
//
// Kept are the quirks that decide who is evicted: victims that were not needed
// stay on the list, device filters ignore free instances, the choice of a node
// hardly looks at whom it evicts. Absent are the one that ignores the asker's
// own allocations (need and free room are what the host says), sampling of
// nodes, and randomness: where Nomad lets the order of a map decide, the order
// of rows and options does.
//
// It never lists a row twice. It keeps scratch memory and no other state; a
// Policy is used by one goroutine at a time.
package nomad
