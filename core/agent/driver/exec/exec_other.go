//go:build !linux

package exec

import (
	"encoding/json"
	"errors"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

var errLinux = errors.New("exec: not supported on this system: tasks require Linux")

// Driver starts processes.
type Driver struct{}

var _ driver.Driver = (*Driver)(nil)

// New says that there is no such driver on this system.
func New(Options) (*Driver, error) { return nil, errLinux }

// Start starts nothing.
func (*Driver) Start(*driver.Spec) (driver.Process, error) { return nil, errLinux }

// Restore finds nothing.
func (*Driver) Restore(*driver.Spec, json.RawMessage) (driver.Process, error) { return nil, errLinux }

// Supervise has nothing to do.
func Supervise() int { return 1 }
