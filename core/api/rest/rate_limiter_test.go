package rest

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/clock"
)

// TestRateLimiter_ForgetsClients checks that memory is bounded, however many
// clients send requests.
func TestRateLimiter_ForgetsClients(t *testing.T) {
	t.Parallel()
	r := NewRateLimiter(500, 1000, 100, clock.Real{})
	for i := range 10_000 {
		r.Acquire(fmt.Sprint("client", i))
	}
	if len(r.clients) > 100 {
		t.Errorf("%d clients are retained, want at most 100", len(r.clients))
	}
}
