// Package serve makes a program of a policy. The same main package becomes a
// WebAssembly module under GOOS=wasip1 and, built with the tag process, a
// process that a host starts and talks to:
//
//	func init() { serve.Register(mypolicy.New) }
//	func main() { serve.Serve() }
//
// Registration belongs in init, since main never runs in a WebAssembly module
// of this kind.
//
// A guest is called by one goroutine at a time.
package serve
