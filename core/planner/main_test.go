package planner_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak multiplies a test's count when CEDE_SOAK=1.
func soak(n int) int {
	if os.Getenv("CEDE_SOAK") == "1" {
		return n * 50
	}
	return n
}
