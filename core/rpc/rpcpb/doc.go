// Package rpcpb owns what servers of a pool say to each other on the wire: the
// messages and the service of rpc.proto, generated.
//
// It knows nothing of what they mean, and nobody but core/rpc imports it.
package rpcpb

//go:generate ./generate.sh .
