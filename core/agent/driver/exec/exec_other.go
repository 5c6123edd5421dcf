//go:build !linux

package exec

import (
	"encoding/json"
	"errors"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

var errLinux = errors.New("exec: not supported on this system: tasks require Linux")

// Driver is not supported on this system.
type Driver struct{}

var _ driver.Driver = (*Driver)(nil)

// New returns an error: the driver is not supported on this system.
func New(Options) (*Driver, error) { return nil, errLinux }

// Start returns an error.
func (*Driver) Start(*driver.Spec) (driver.Process, error) { return nil, errLinux }

// Restore returns an error.
func (*Driver) Restore(*driver.Spec, json.RawMessage) (driver.Process, error) { return nil, errLinux }

// Available returns false.
func (UIDRange) Available() bool { return false }

// Limits returns an error.
func Limits() error { return errLinux }

// Supervise returns the exit code 1.
func Supervise() int { return 1 }
