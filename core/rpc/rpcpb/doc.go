// Package rpcpb holds the messages and the service of rpc.proto, generated: the wire
// format of calls between the servers of a pool.
//
// It has no logic, and only core/rpc imports it.
package rpcpb

//go:generate ./generate.sh .
