package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// PriorityClass is a named priority. The rules are those of Kubernetes, and the
// same for a server and a scenario.
type PriorityClass struct {
	Name          string
	Value         int32
	GlobalDefault bool
	NeverPreempts bool
	Description   string
}

// HighestUserPriority is the greatest value of a class that people make; what is above
// is for what keeps the cluster itself alive.
const HighestUserPriority = 1_000_000_000

// systemPrefix begins the names that are reserved.
const systemPrefix = "system-"

// SystemClasses are the classes that are there without anybody making them.
func SystemClasses() []*PriorityClass {
	return []*PriorityClass{
		{Name: "system-cluster-critical", Value: 2_000_000_000, Description: "What the cluster needs, and what may move to another node."},
		{Name: "system-node-critical", Value: 2_000_001_000, Description: "What a node needs, and what may not leave it."},
	}
}

// SystemClass is the system class of this name; nil when there is none.
func SystemClass(name string) *PriorityClass {
	for _, c := range SystemClasses() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// WithSystemClasses are classes and the system classes that are not among them,
// ascending by name. The list that is given is left as it is.
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

// IsReservedClass is whether only the system may have a class of this name.
func IsReservedClass(name string) bool { return strings.HasPrefix(name, systemPrefix) }

// DefaultClass is the global default, the lowest of several; nil: there is none.
func DefaultClass(list []*PriorityClass) (lowest *PriorityClass) {
	for _, c := range list {
		if c.GlobalDefault && (lowest == nil || cmp.Or(cmp.Compare(c.Value, lowest.Value), cmp.Compare(c.Name, lowest.Name)) < 0) {
			lowest = c
		}
	}
	return lowest
}

// ClassProblem is what is wrong with a class, and with which of its fields.
type ClassProblem struct {
	Field   string // as documents write it
	Message string
	Remedy  string
}

// Problems is what is wrong with the class taken by itself, but for its name's
// characters, which each reader has rules of its own for.
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
