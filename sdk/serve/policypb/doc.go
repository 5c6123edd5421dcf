// Package policypb owns what a host and a policy that runs as a process must
// agree on before the first frame: the gRPC service that carries frames, the
// handshake of go-plugin, and the size of messages.
//
// The host in plugins/process and the guest in sdk/serve import it, and nobody
// else does. It has no place in a WebAssembly module.
package policypb

//go:generate ./generate.sh .
