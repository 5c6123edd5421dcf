package policies

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/suggest"
)

// UnknownError is returned if no policy has this name.
type UnknownError struct{ Policy string }

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown policy %q", e.Policy) }

// Hint returns a built-in policy with a similar name, or the available policies.
func (e *UnknownError) Hint() string {
	return suggest.DidYouMean(e.Policy, builtin.Names(), "use a built-in policy ("+strings.Join(builtin.Names(), ", ")+"), a .wasm file, a policy's folder or an executable")
}
