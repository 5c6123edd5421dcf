package preempt

import "github.com/cede-scheduler/cede/core/policy"

// hook is an instance of a policy, held for the duration of a search.
type hook struct {
	version  *policy.Version
	instance policy.Instance
}

// acquireHook acquires an instance. It must be released even after an error.
func acquireHook(v *policy.Version, onCall func(policy.Call)) (hook, error) {
	instance, err := v.AcquireObserved(onCall)
	return hook{v, instance}, err
}

// release is idempotent.
func (h *hook) release() {
	if h.instance != nil {
		h.version.Release(h.instance)
		h.instance = nil
	}
}
