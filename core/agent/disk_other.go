//go:build !unix

package agent

// lock trusts that there is one agent: these systems have no flock.
func (d *disk) lock() (unlock func(), err error) { return func() {}, nil }
