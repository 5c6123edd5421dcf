package raftlog

import (
	"errors"
)

// ErrGap means that entries do not continue the log, or that a deletion would leave a gap.
var ErrGap = errors.New("log must not have gaps")
