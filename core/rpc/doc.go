// Package rpc owns how servers of one pool talk to each other: one listener that
// carries Raft and gRPC, who may speak on it, and the calls themselves with their
// deadlines.
//
// It decides nothing and reads no noun of the scheduler: evaluations, plans and
// entries are bytes here, which core/server makes and reads. It elects nobody and
// knows no membership: whoever makes a Client tells it where a server is.
//
// cmd opens a Listener, gives its Raft half to core/replication and its gRPC half
// to a Server; core/server answers as the Handler and asks through the Client.
//
// Listener, Server and Client are safe for concurrent use. DESIGN.md tells what is
// on the wire and who is refused.
package rpc
