//go:build !linux

package app

import "time"

// monotonic returns 0: only systemd uses it.
func monotonic() time.Duration { return 0 }
