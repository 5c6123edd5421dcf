package server_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/plugins/registry"
)

// Loading a version at every build does not fill the disk: all but the newest versions and
// those in use are deleted, with modules that no other version needs.
func TestCollectGarbage_RemovesOldPolicyVersions(t *testing.T) {
	c := startServer(t, func(s *server.Config, _ *registry.PolicyOptions) { s.Retention.Policies = 2 })
	active := c.load("first")
	c.activate(active)
	for knob := range 5 {
		c.load("last", func(r *policy.LoadRequest) { r.Config = fmt.Appendf(nil, `{"knob":%d}`, knob) })
	}
	newest := c.load("first", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":9}`) })
	done, err := c.CollectGarbage(t.Context(), false)
	if err != nil || done.Policies != 4 {
		t.Errorf("%d versions deleted, %v", done.Policies, err)
	}
	left := map[string]bool{}
	for _, v := range c.Snapshot().PolicyVersions() {
		left[v.ID] = true
	}
	if len(left) != 3 || !left[active.ID] || !left[newest.ID] || c.activeVersion() != active.ID {
		t.Errorf("remaining versions %v, active %s", left, c.activeVersion())
	}
	if n := c.member.Modules.Len(); n != 2 {
		t.Errorf("%d modules stored, want 2", n)
	}
	if _, err := c.UnloadPolicy(t.Context(), "p", newest.ID); err != nil {
		t.Error(err)
	}
	if done, err = c.CollectGarbage(t.Context(), true); err != nil || done.Policies != 0 || c.member.Modules.Len() != 2 {
		t.Errorf("versions in use were deleted: %+v, %v", done, err)
	}
}
