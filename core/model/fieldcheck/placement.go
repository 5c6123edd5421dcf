package fieldcheck

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-version"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

// AffinityWeight checks the weight of an affinity.
func AffinityWeight(n int) Problem { return weight(n, -100, "a negative weight repels") }

// SpreadWeight checks the weight of a spread.
func SpreadWeight(n int) Problem { return weight(n, 1, "omit it for the default of 50") }

func weight(n, least int, remedy string) Problem {
	if n < least || n > 100 {
		return Problem{fmt.Sprintf("invalid weight %d: must be between %d and 100", n, least), remedy}
	}
	return Problem{}
}

// MaxSkew checks the maximum skew of a spread.
func MaxSkew(n int) Problem {
	if n < 1 {
		return Problem{fmt.Sprintf("invalid skew %d: must be 1 or more", n), "omit it if the spread is only a preference"}
	}
	return Problem{}
}

// TargetPercent checks the share of one value of a spread.
func TargetPercent(n int) Problem {
	if n < 0 || n > 100 {
		return Problem{fmt.Sprintf("invalid percentage %d: must be between 0 and 100", n), "write the percentage of the count"}
	}
	return Problem{}
}

// TargetSum checks the sum of the shares of a spread.
func TargetSum(n int) Problem {
	if n > 100 {
		return Problem{fmt.Sprintf("the percentages add up to %d: must be at most 100", n), "reduce them"}
	}
	return Problem{}
}

// SpreadAttribute checks the attribute of a spread.
func SpreadAttribute(name string) Problem {
	if name == "" {
		return Problem{"attribute is missing", "name an attribute of the nodes, such as zone"}
	}
	return Problem{}
}

// TermLabels checks the labels of a label term.
func TermLabels(labels map[string]string) Problem {
	if len(labels) == 0 {
		return Problem{"labels are missing", "set the labels of the allocations to match, such as {app: web}"}
	}
	return Problem{}
}

// DistinctHosts checks the other fields of a distinct_hosts constraint.
func DistinctHosts(attribute, value string) Problem {
	if attribute != "" || value != "" {
		return Problem{"distinct_hosts takes no attribute and no value", "remove them; use distinct_property for domains other than hosts"}
	}
	return Problem{}
}

// Operator checks the operator of a constraint. mayCount reports whether operators that
// count allocations are valid: only hard constraints of groups may have them.
func Operator(operator string, mayCount bool) Problem {
	o := model.Operator(operator)
	if o.Valid() && (mayCount || !o.CountsAllocations()) {
		return Problem{}
	}
	var allowed []string
	for _, o := range model.Operators {
		if mayCount || !o.CountsAllocations() {
			allowed = append(allowed, string(o))
		}
	}
	text, remedy := fmt.Sprintf("unsupported operator %.60q", operator), "write one of "+strings.Join(allowed, " ")
	if operator == "" {
		text = "operator is missing"
	}
	if len(operator) > 2 {
		remedy = suggest.DidYouMean(operator, allowed, remedy)
	}
	return Problem{text, remedy}
}

// Operand checks the value of a constraint, or the values of in and notin, against its
// operator. remedy is the one for a missing value, which depends on the syntax.
func Operand(o model.Operator, value string, values []string, remedy string) Problem {
	switch o {
	case model.OpIsSet, model.OpIsNotSet:
		if value != "" {
			return Problem{fmt.Sprintf("%s takes no value", o), "remove it"}
		}
		return Problem{}
	case model.OpDistinctProperty:
		if n, err := strconv.Atoi(value); value != "" && (err != nil || n < 1) {
			return Problem{fmt.Sprintf("invalid number of instances per value %.60q: must be an integer of 1 or more", value), "omit it for 1"}
		}
		return Problem{}
	}
	switch {
	case value == "" && len(values) == 0:
		return Problem{"value is missing", remedy}
	case slices.Contains(values, ""):
		return Problem{"the list contains an empty string", "remove it"}
	case len(value) > MaxPattern && (o == model.OpRegexp || o == model.OpVersion):
		return Problem{fmt.Sprintf("a value of %d bytes: expected at most %d", len(value), MaxPattern), "use a shorter one"}
	case o == model.OpRegexp:
		if _, err := regexp.Compile(value); err != nil {
			return Problem{fmt.Sprintf("invalid regular expression %.100q: %s", value, strings.TrimPrefix(err.Error(), "error parsing regexp: ")), "correct it; the syntax is RE2"}
		}
	case o == model.OpVersion:
		if _, err := version.NewConstraint(value); err != nil {
			return Problem{fmt.Sprintf("invalid version constraint %.60q", value), `write it as ">= 1.2, < 2.0"`}
		}
	}
	return Problem{}
}

// minToleration is the minimum time limit of a toleration: an allocation that leaves a node
// can return to it at once, so that shorter limits keep a scheduler busy.
const minToleration = time.Second

// Toleration checks which fields of a toleration go together. It returns the problem of
// the value, of the key, and of the time limit.
func Toleration(t model.Toleration) (value, key, limit Problem) {
	switch exists := t.Operator == model.TolerationExists; {
	case exists && t.Value != "":
		value = Problem{"operator Exists takes no value", "remove the value, or use operator Equal"}
	case !exists && t.Key == "":
		key = Problem{"key is missing", "name the taint's key; operator Exists without a key tolerates every taint"}
	}
	if t.For != 0 && t.Effect != model.NoExecute {
		limit = Problem{"a toleration with a time limit requires effect NoExecute", "set effect to NoExecute, or remove for"}
	} else if t.For > 0 && t.For < minToleration {
		limit = Problem{"the time limit is below 1s", "use 1s or more; an instance can be placed on the node again"}
	}
	return value, key, limit
}
