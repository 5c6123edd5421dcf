//go:build !unix

package agent

import "errors"

// freeDisk does not know; the configuration says it.
func freeDisk(string) (int64, error) { return 0, errors.ErrUnsupported }
