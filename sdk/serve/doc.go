// Package serve turns a policy into a program. The same main package becomes a
// WebAssembly module under GOOS=wasip1 and, if it is built with the tag process, a
// process that a host starts and calls:
//
//	func init() { serve.Register(mypolicy.New) }
//	func main() { serve.Serve() }
//
// Call Register in init, because main does not run in a WebAssembly module of this
// kind.
//
// The host calls a guest from one goroutine at a time.
package serve
