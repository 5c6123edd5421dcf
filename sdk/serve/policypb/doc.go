// Package policypb defines the contract between a host and a policy process before
// the first frame: the gRPC service that carries frames, the handshake of go-plugin,
// and the maximum message size.
//
// Only the host in plugins/process and the guest in sdk/serve import it. It is not
// part of WebAssembly modules.
package policypb

//go:generate ./generate.sh .
