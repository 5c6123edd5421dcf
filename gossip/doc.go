// Package gossip owns how servers discover each other: a pool of members over
// hashicorp/memberlist, the tags that each member publishes, the rules for admission, and
// the keys that encrypt the pool's messages.
//
// It does not elect a leader, and a failed member is a hint rather than a fact: in a small
// pool the second failure in a row is detected late (DESIGN.md). It does not authenticate
// servers either: a key proves membership of the pool, not identity.
//
// cmd creates a Pool and adapts it to the server's membership interface.
//
// Pool is safe for concurrent use. Events are dropped if the channel is full, so consumers
// also compare with Members from time to time.
package gossip
