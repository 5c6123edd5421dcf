package raftlog

import (
	"errors"
)

// ErrGap means that entries do not continue the log, or that a deletion would
// leave a hole in it.
var ErrGap = errors.New("the log must stay without gaps")
