package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Role is a set of operations that a token permits.
type Role string

// The roles. Read, Submit and Operate each cover those before. Policy, Node and
// Kubernetes are separate; Operate covers Kubernetes. Management covers everything.
//
// Policy is separate because loading a policy determines which workload is evicted,
// which requires other trust than running jobs or maintaining nodes: an operator on
// call need not be able to change the rules, nor the author of rules to drain
// nodes. It does not cover Read, so that a pipeline that loads modules has no other
// access. A user gets both.
const (
	Read       Role = "read"       // see everything but tokens
	Submit     Role = "submit"     // register, plan and stop jobs
	Operate    Role = "operate"    // nodes, configuration, broker, snapshots
	Policy     Role = "policy"     // load, shadow, activate and unload policies
	Node       Role = "node"       // the operations of a node's agent
	Kubernetes Role = "kubernetes" // the extender of kube-scheduler
	Management Role = "management" // everything, including tokens
)

// Roles lists every role, in the order in which messages name them.
var Roles = []Role{Read, Submit, Operate, Policy, Node, Kubernetes, Management}

// Covers reports whether a holder of r may perform the operations of need.
func (r Role) Covers(need Role) bool {
	switch r {
	case need, Management:
		return true
	case Submit:
		return need == Read
	case Operate:
		return need == Submit || need == Read || need == Kubernetes
	}
	return false
}

// Allows reports whether these roles cover at least one of needs. Unknown names are
// ignored.
func Allows(have []string, needs ...Role) bool {
	for _, h := range have {
		r := Role(h)
		if !slices.Contains(Roles, r) {
			continue
		}
		if slices.ContainsFunc(needs, r.Covers) {
			return true
		}
	}
	return false
}

// ParseRoles parses role names. It returns one error for all unknown names. The
// result is sorted and contains each role once.
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	var errs []error
	for _, name := range names {
		r := Role(strings.TrimSpace(name))
		if !slices.Contains(Roles, r) {
			errs = append(errs, fmt.Errorf("unknown role %q: expected %s", name, words(Roles)))
			continue
		}
		roles = append(roles, r)
	}
	if len(names) == 0 {
		errs = append(errs, fmt.Errorf("roles are required: one or more of %s", words(Roles)))
	}
	slices.Sort(roles)
	return slices.Compact(roles), errors.Join(errs...)
}

func words(roles []Role) string {
	list := make([]string, len(roles))
	for i, r := range roles {
		list[i] = string(r)
	}
	return strings.Join(list, ", ")
}
