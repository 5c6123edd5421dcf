//go:build !unix

package agent

import "errors"

// freeDisk returns 0: the configuration must set the value.
func freeDisk(string) (int64, error) { return 0, errors.ErrUnsupported }
