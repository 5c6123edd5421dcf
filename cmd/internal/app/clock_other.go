//go:build !linux

package app

import "time"

// monotonic is asked for by systemd alone.
func monotonic() time.Duration { return 0 }
