//go:build !unix

package agent

// lock does nothing: these systems have no flock.
func (d *disk) lock() (unlock func(), err error) { return func() {}, nil }
