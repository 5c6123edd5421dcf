// Package gossip owns how servers find one another: a pool of members over
// hashicorp/memberlist, what each says of itself, who may come in, and the keys
// that the pool's messages are sealed with.
//
// It knows nothing of what the servers do: it elects nobody, and that a member
// does not answer any more is a hint, not a verdict (on a small pool the second
// failure in a row is found late; DESIGN.md). Identity does not come from here
// either: the keys tell that somebody belongs to the pool, not who it is.
//
// cmd makes a Pool and adapts it to the server's membership interface.
//
// Pool is safe for concurrent use. Events may be dropped where nobody reads
// them; whoever acts on them also compares with Members now and then.
package gossip
