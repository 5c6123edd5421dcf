package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

// A Quantity is an amount in its textual form: "500m", "2Gi", or a plain number.
type Quantity string

// UnmarshalJSON accepts a string or a number.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '"' {
		if string(text) == "null" {
			return nil
		}
		var n json.Number
		if err := json.Unmarshal(text, &n); err != nil {
			return errors.New("quantity must be a string or a number")
		}
		*q = Quantity(n)
		return nil
	}
	return json.Unmarshal(text, (*string)(q))
}

// bytesSuffix matches a quantity of bytes with a suffix that is common elsewhere.
var bytesSuffix = regexp.MustCompile(`^([0-9.]+) ?([kKmMgGtTpP])i?[bB]?$`)

// invalidQuantity returns the error of an invalid quantity, with its remedy.
func invalidQuantity(q Quantity) error {
	remedy := "write a quantity such as 500m, 2 or 1Gi"
	if m := bytesSuffix.FindStringSubmatch(string(q)); m != nil {
		remedy = suggest.Question(m[1] + strings.ToUpper(m[2]) + "i")
	}
	return fmt.Errorf("invalid quantity %.60q; %s", string(q), remedy)
}

// A ResourceList holds quantities by Kubernetes resource name.
type ResourceList map[string]Quantity

// Kubernetes names of resources that have another name or meaning in the model.
const (
	kubeDisk = "ephemeral-storage"
	podSlots = "pods"
)

// resourceName returns the model's name of a resource.
func resourceName(name string) string {
	if name == kubeDisk {
		return "disk"
	}
	return name
}

// exactUnit returns the unit in which amounts are added before they are rounded once:
// millicores of cpu, otherwise units (bytes of memory and disk).
func exactUnit(resource string) string {
	if resource == "cpu" {
		return "cpu"
	}
	return "units"
}

const mebi = 1 << 20

// inModel converts an exact amount to the model's unit. If up is true it rounds up.
func inModel(resource string, exact int64, up bool) int64 {
	if resource != "memory" && resource != "disk" {
		return exact
	}
	if up {
		exact += mebi - 1
	}
	return exact / mebi
}

// amounts caches parsed quantities by unit and text.
type amounts map[string]int64

// of returns the exact amount of a resource, given by its model name. If the amount
// is too large it returns model.MaxAmount and an error that wraps
// model.ErrQuantityTooLarge.
func (a amounts) of(resource string, q Quantity, capacity bool) (int64, error) {
	unit := exactUnit(resource)
	key := unit + string(q)
	if capacity {
		key += "-"
	}
	if n, ok := a[key]; ok {
		return n, nil
	}
	parse := model.ParseQuantity
	if capacity {
		parse = model.ParseCapacity
	}
	n, err := parse(unit, string(q))
	if errors.Is(err, model.ErrQuantityTooLarge) {
		n = model.MaxAmount
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", resource, err)
	}
	if len(a) < 1<<16 {
		a[key] = n
	}
	return n, nil
}

// A Bound is the bound of a disruption budget: a number of pods or a percentage.
type Bound struct {
	Number  int32
	Percent bool
}

// UnmarshalJSON accepts 1, "1" and "50%".
func (b *Bound) UnmarshalJSON(text []byte) error {
	word := strings.Trim(string(text), `"`)
	number, percent := strings.CutSuffix(word, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("invalid bound %.40q: must be a number of pods or a percentage", word)
	}
	b.Number, b.Percent = int32(n), percent
	return nil
}
