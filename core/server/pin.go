package server

import "github.com/cede-scheduler/cede/core/policy"

// Pin is the set of policies in force, held until its Unpin: for whoever schedules
// beside the workers, as the Kubernetes extender does.
func (s *Server) Pin() *policy.Set { return s.policies.Pin() }
