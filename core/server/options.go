package server

// Check is one condition for a server to be ready.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Reloadable is configuration that may change while a server runs; nil leaves a value
// unchanged.
type Reloadable struct {
	Workers *int // evaluations processed at a time; 0: none
}
