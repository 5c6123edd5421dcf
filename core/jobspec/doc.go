// Package jobspec reads job files and converts jobs between the API and the
// scheduler's model. Parse and Load read HCL2 in Nomad's dialect, YAML, and JSON into
// the API's job. ToModel applies defaults, validates every field and returns the
// model's job; FromModel is its inverse.
//
// The package never contacts a server and never reads cluster state: the server
// checks whether a priority class or a policy exists. Commands read files with this
// package, and the API validates requests with ToModel, so both report the same
// problem in the same words.
//
// Files and requests are untrusted input. No input may cause a panic, an endless loop
// or memory use out of proportion to its size. If a job is invalid, all problems are
// returned at once, each with its position, the expected value and a remedy.
//
// All functions are safe for concurrent use. They do not change the jobs passed to
// them, and the values they return share no maps or slices with their arguments.
package jobspec
