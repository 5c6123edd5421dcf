// Package rpc is the communication between the servers of one pool: one listener that
// carries Raft and gRPC, the authentication of its callers, and the calls with their
// deadlines.
//
// It makes no decisions and decodes no types of the scheduler: evaluations, plans and
// entries are bytes here, which core/server encodes and decodes. It elects nothing and
// holds no member list: a Client receives a function that returns addresses.
//
// cmd opens a Listener, and passes its Raft side to core/replication and its gRPC side to
// a Server. core/server implements the Handler and calls other servers through the Client.
//
// Listener, Server and Client are safe for concurrent use. DESIGN.md describes the wire
// protocol and which callers are refused.
package rpc
