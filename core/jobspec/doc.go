// Package jobspec owns the job file: how people write a job down, and what it
// means. Parse and Load read HCL2 in Nomad's dialect, YAML, and JSON into the
// API's job; ToModel fills in what was left out, checks everything and gives the
// scheduler's noun; FromModel is its inverse.
//
// It never talks to a server, and never looks at a cluster: whether a priority
// class or a policy exists is the server's to say. Commands read files through
// it, and the API checks what it receives with ToModel, so that both say the
// same about the same mistake.
//
// Files and requests come from strangers. Nothing in them may cause a panic, run
// for ever or take memory out of proportion; every problem is told at once, each
// with its place, what was expected, and what to do.
//
// All functions may be called concurrently. Jobs given to them are not changed,
// and what they return shares maps and lists with nothing.
package jobspec
