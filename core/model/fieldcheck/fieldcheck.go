package fieldcheck

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Bounds of fields. They are far beyond any real cluster and bound the cost of
// processing a file.
const (
	MaxCount    = 10_000_000                // instances of a group
	MaxRequests = 16                        // device requests of a group
	MaxDevices  = math.MaxInt32             // instances of a device request
	MaxPattern  = 1000                      // bytes of a value that is compiled
	MaxDuration = 50 * 365 * 24 * time.Hour // 50 years
)

// A Problem describes why a value is invalid. The zero Problem means that it is valid.
type Problem struct {
	Text   string // without the name of the field, which the caller adds
	Remedy string // an imperative
}

// Found reports whether there is a problem.
func (p Problem) Found() bool { return p.Text != "" }

// removeSign is the remedy for negative values.
const removeSign = "remove the sign"

func negativeNumber(n int, expected string) Problem {
	return Problem{fmt.Sprintf("%d is negative: expected %s", n, expected), removeSign}
}

// Count checks the number of instances of a group of a job type.
func Count(n int, jobType string, perNode bool) Problem {
	switch {
	case n < 0:
		return negativeNumber(n, "0 or more")
	case perNode && n > 1:
		return Problem{fmt.Sprintf("%d instances of a group of a %s job, which runs on every node: expected 0 or 1", n, jobType), "omit it"}
	case n > MaxCount:
		return Problem{fmt.Sprintf("%d is too large: expected at most %d", n, MaxCount), "check the number"}
	}
	return Problem{}
}

// MinCount checks the number of instances that an all-or-none job requires of a group
// with count instances.
func MinCount(n, count int) Problem {
	switch {
	case n < 0:
		return negativeNumber(n, "0 or more")
	case n > max(0, count):
		return Problem{fmt.Sprintf("%d is more than the group's count, %d", n, count), "write a smaller number, or raise count"}
	}
	return Problem{}
}

// MaxParallelEvictions checks the number of concurrent evictions of a group.
func MaxParallelEvictions(n int) Problem {
	switch {
	case n < 0:
		return negativeNumber(n, "0 (unlimited) or more")
	case n > math.MaxInt32:
		return Problem{fmt.Sprintf("%d is too large: expected at most %d", n, math.MaxInt32), "write 0 for no limit"}
	}
	return Problem{}
}

// Duration checks a duration. format is its text in the syntax of the file.
func Duration(d time.Duration, format string) Problem {
	switch {
	case d < 0:
		return Problem{format + " is negative: expected a duration of 0 or more", removeSign}
	case d > MaxDuration:
		return Problem{format + " is too long: expected at most 50 years", "omit it for an unlimited duration"}
	}
	return Problem{}
}

// LostAfter checks when the instances on a disconnected node count as lost. It does not
// check the bounds of the duration.
func LostAfter(d time.Duration) Problem {
	if d == 0 {
		return Problem{"0s marks instances lost immediately", "remove disconnect for the same effect, or omit this field to keep instances until the node reconnects"}
	}
	return Problem{}
}

// Bounds of the name and the description of a namespace, in bytes.
const (
	MaxNamespaceName = 128
	MaxNamespaceText = 256
)

// NamespaceName checks the name of a namespace.
func NamespaceName(name string) Problem {
	isAllowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
	}
	if len(name) > MaxNamespaceName || strings.Trim(name, ".") == "" || strings.TrimFunc(name, isAllowed) != "" {
		return Problem{fmt.Sprintf("invalid name %.60q: expected 1 to %d letters, digits, ., _ and -", name, MaxNamespaceName), "choose another name"}
	}
	return Problem{}
}

// NamespaceText checks the description of a namespace.
func NamespaceText(text string) Problem {
	if len(text) > MaxNamespaceText {
		return Problem{fmt.Sprintf("description of %d bytes: expected at most %d", len(text), MaxNamespaceText), "write a shorter description"}
	}
	return Problem{}
}

// NamespaceWeight checks the weight of a namespace.
func NamespaceWeight(w float64) Problem {
	if !(w > 0) || math.IsInf(w, 1) {
		return Problem{fmt.Sprintf("%v is not a valid weight: expected more than 0", w), "write a positive number, or omit it for 1"}
	}
	return Problem{}
}

// ClassName checks the name of a priority class.
func ClassName(name string) Problem {
	if name == "" || strings.ContainsAny(name, " \t\n/") {
		return Problem{"name must not be empty or contain spaces or slashes", "choose another name"}
	}
	return Problem{}
}

// MaxBudgetText is the maximum size of a name or a label of a disruption budget, in bytes.
const MaxBudgetText = 256

// BudgetName checks the name of a disruption budget or, if field is namespace, of its namespace.
func BudgetName(field, name string) Problem {
	if name == "" || len(name) > MaxBudgetText || strings.ContainsAny(name, " \t\n/*\x00") {
		return Problem{fmt.Sprintf("%s %.60q must have 1 to %d bytes, without spaces, slashes or asterisks", field, name, MaxBudgetText), "choose another name"}
	}
	return Problem{}
}

// BudgetLabel checks a label that a disruption budget selects.
func BudgetLabel(key, value string) Problem {
	if key == "" || len(key)+len(value) > MaxBudgetText {
		return Problem{fmt.Sprintf("a label must have a key, and at most %d bytes", MaxBudgetText), "choose another label"}
	}
	return Problem{}
}

// Annotation checks the value of an annotation.
func Annotation(v float64) Problem {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Problem{fmt.Sprintf("invalid annotation %v: must be a finite number", v), "write a finite number"}
	}
	return Problem{}
}

// Amount checks an amount of a resource.
func Amount(resource string, n int64) Problem {
	switch {
	case !IsResource(resource):
		return Problem{fmt.Sprintf("invalid resource name %.60q: expected a word such as cpu or nvidia.com/gpu", resource), "write a name without spaces"}
	case n < 0:
		return Problem{fmt.Sprintf("%d is negative: expected an amount of 0 or more", n), removeSign}
	case n > model.MaxAmount:
		return Problem{fmt.Sprintf("%d %s is too large: expected at most %d", n, model.Unit(resource), int64(model.MaxAmount)), "check the number and its unit"}
	}
	return Problem{}
}

// IsResource reports whether name is a valid name of a resource: not empty, and
// without spaces and control characters.
func IsResource(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] == 0x7f {
			return false
		}
	}
	return name != ""
}

// Port checks a host port. requested reports whether an earlier field has the same one.
func Port(n int, requested bool) Problem {
	switch {
	case n < 1 || n > math.MaxUint16:
		return Problem{fmt.Sprintf("invalid port %d: must be between 1 and 65535", n), "use a valid port"}
	case requested:
		return Problem{fmt.Sprintf("port %d is listed twice", n), "remove one of the two"}
	}
	return Problem{}
}

// DeviceID checks the identifier of a device request.
func DeviceID(id string) Problem {
	if slices.Contains(strings.SplitN(id, "/", 3), "") {
		return Problem{fmt.Sprintf("invalid device ID %.60q: expected type, vendor/type or vendor/type/model", id), "write it as gpu, nvidia/gpu or nvidia/gpu/a100"}
	}
	return Problem{}
}

// DeviceCount checks the number of instances of a device request.
func DeviceCount(n int64) Problem {
	switch {
	case n < 1:
		return Problem{fmt.Sprintf("%d devices: expected 1 or more", n), "remove the request, or request 1 or more"}
	case n > MaxDevices:
		return Problem{fmt.Sprintf("%d devices: expected at most %d", n, MaxDevices), "check the number"}
	}
	return Problem{}
}

// DeviceRequests checks the number of device requests of a group.
func DeviceRequests(n int) Problem {
	if n > MaxRequests {
		return Problem{fmt.Sprintf("%d device requests: expected at most %d", n, MaxRequests), "request several devices of a kind with a count"}
	}
	return Problem{}
}
