// Package policies brings the policies that users name to the commands: built-in
// ones, WebAssembly modules, executables and bundles, each run by its host. It
// starts a host when the first policy needs it.
//
// cmd/internal/cli calls it. A Loader is safe for concurrent use.
package policies
