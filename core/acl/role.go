package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Role is a kind of thing that a token lets its holder do.
type Role string

// The roles. Read, Submit and Operate each cover those before; Policy and Node
// stand beside them; Management covers everything.
//
// Policy is apart because whoever loads a policy decides who is evicted, and
// that is another trust than running work or tending nodes: an operator on call
// need not be able to change the rules, nor the author of rules to drain nodes.
// It does not cover Read, so that a pipeline that loads modules learns nothing
// else; a person gets both.
const (
	Read       Role = "read"       // see everything but tokens
	Submit     Role = "submit"     // register, plan and stop jobs
	Operate    Role = "operate"    // nodes, configuration, broker, snapshots
	Policy     Role = "policy"     // load, shadow, activate and unload policies
	Node       Role = "node"       // what the agent on a node does
	Management Role = "management" // everything, tokens included
)

// Roles lists every role, in the order in which messages name them.
var Roles = []Role{Read, Submit, Operate, Policy, Node, Management}

// Covers is whether a holder of r may do what needs need.
func (r Role) Covers(need Role) bool {
	switch r {
	case need, Management:
		return true
	case Submit:
		return need == Read
	case Operate:
		return need == Submit || need == Read
	}
	return false
}

// Allows is whether somebody with these roles may do what any one of needs
// suffices for. Names that are no roles count for nothing.
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

// ParseRoles checks names; every one that is no role is told at once. The
// result is sorted and holds each once.
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	var errs []error
	for _, name := range names {
		r := Role(strings.TrimSpace(name))
		if !slices.Contains(Roles, r) {
			errs = append(errs, fmt.Errorf("role %q is unknown: want %s", name, words(Roles)))
			continue
		}
		roles = append(roles, r)
	}
	if len(names) == 0 {
		errs = append(errs, fmt.Errorf("no role is named: want some of %s", words(Roles)))
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
