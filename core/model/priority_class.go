package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A PriorityClass is a named priority. The rules are those of Kubernetes, in
// servers and scenarios alike.
type PriorityClass struct {
	Name          string
	Value         int32
	GlobalDefault bool
	NeverPreempts bool
	Description   string
}

// HighestUserPriority is the highest value of a class that users create; higher
// values are reserved for system classes.
const HighestUserPriority = 1_000_000_000

// systemPrefix begins the names that are reserved.
const systemPrefix = "system-"

// SystemClasses returns the built-in classes.
func SystemClasses() []*PriorityClass {
	return []*PriorityClass{
		{Name: "system-cluster-critical", Value: 2_000_000_000, Description: "What the cluster needs, and what may move to another node."},
		{Name: "system-node-critical", Value: 2_000_001_000, Description: "What a node needs, and what may not leave it."},
	}
}

// SystemClass returns the system class with the name, or nil if there is none.
func SystemClass(name string) *PriorityClass {
	for _, c := range SystemClasses() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// WithSystemClasses returns the classes and the system classes that are not among
// them, ascending by name. The given list is not changed.
func WithSystemClasses(list []*PriorityClass) []*PriorityClass {
	all := slices.Clone(list)
	for _, c := range SystemClasses() {
		if !slices.ContainsFunc(list, func(o *PriorityClass) bool { return o.Name == c.Name }) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *PriorityClass) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// IsReservedClass reports whether the name is reserved for system classes.
func IsReservedClass(name string) bool { return strings.HasPrefix(name, systemPrefix) }

// DefaultClass returns the global default, the lowest if there are several, or nil
// if there is none.
func DefaultClass(list []*PriorityClass) (lowest *PriorityClass) {
	for _, c := range list {
		if c.GlobalDefault && (lowest == nil || cmp.Or(cmp.Compare(c.Value, lowest.Value), cmp.Compare(c.Name, lowest.Name)) < 0) {
			lowest = c
		}
	}
	return lowest
}

// A ClassProblem describes what is invalid about a field of a class.
type ClassProblem struct {
	Field   string // as documents write it
	Message string
	Remedy  string
}

// Problems returns the problems of the class itself. It does not check the
// characters of the name, for which each reader has its own rules.
func (c *PriorityClass) Problems() []ClassProblem {
	if !IsReservedClass(c.Name) {
		return c.valueProblems()
	}
	system := SystemClass(c.Name)
	if system == nil {
		return []ClassProblem{{"name", fmt.Sprintf("%.100q is reserved, as is every name that begins with %s", c.Name, systemPrefix), "choose another name"}}
	}
	var problems []ClassProblem
	if c.Value != system.Value {
		problems = append(problems, ClassProblem{
			"value", fmt.Sprintf("%s is %d always, not %d", c.Name, system.Value, c.Value),
			fmt.Sprintf("write %d, or leave the class out: it is there without being declared", system.Value),
		})
	}
	if c.GlobalDefault {
		problems = append(problems, ClassProblem{"globalDefault", c.Name + " cannot be the global default", "remove globalDefault"})
	}
	if c.NeverPreempts {
		problems = append(problems, ClassProblem{"preemptionPolicy", c.Name + " always preempts lower priorities", "remove preemptionPolicy"})
	}
	return problems
}

func (c *PriorityClass) valueProblems() []ClassProblem {
	if c.Value <= HighestUserPriority {
		return nil
	}
	return []ClassProblem{{
		"value", fmt.Sprintf("%d is above %d, the most that a class may have", c.Value, HighestUserPriority),
		fmt.Sprintf("write at most %d; system-cluster-critical and system-node-critical are above it", HighestUserPriority),
	}}
}
