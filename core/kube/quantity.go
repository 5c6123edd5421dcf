package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// Quantity is an amount as it is written: "500m", "2Gi", or a bare number.
type Quantity string

// UnmarshalJSON takes a text or a number.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '"' {
		if string(text) == "null" {
			return nil
		}
		var n json.Number
		if err := json.Unmarshal(text, &n); err != nil {
			return errors.New("a quantity must be a text or a number")
		}
		*q = Quantity(n)
		return nil
	}
	return json.Unmarshal(text, (*string)(q))
}

// ResourceList is amounts by Kubernetes' names.
type ResourceList map[string]Quantity

// Names of resources that are called otherwise here.
const (
	kubeDisk = "ephemeral-storage"
	podSlots = "pods"
)

// resourceName is what a resource is called here.
func resourceName(name string) string {
	if name == kubeDisk {
		return "disk"
	}
	return name
}

// exactUnit is the unit in which amounts of a resource are added up before they
// are rounded once: millicores of cpu, bytes of memory and disk, else units.
func exactUnit(resource string) string {
	if resource == "cpu" {
		return "cpu"
	}
	return "units"
}

const mebi = 1 << 20

// inModel converts an exact amount to the model's unit.
func inModel(resource string, exact int64, up bool) int64 {
	if resource != "memory" && resource != "disk" {
		return exact
	}
	if up {
		exact += mebi - 1
	}
	return exact / mebi
}

// amounts parses quantities, each text once.
type amounts map[string]int64

// of is the exact amount of a resource, under its name here; with the error that it is
// too large, the largest there is.
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

// Bound is a number of pods or a percentage, as budgets have it.
type Bound struct {
	Number  int32
	Percent bool
}

// UnmarshalJSON takes 1, "1" and "50%".
func (b *Bound) UnmarshalJSON(text []byte) error {
	word := strings.Trim(string(text), `"`)
	number, percent := strings.CutSuffix(word, "%")
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("%.40q is neither a number of pods nor a percentage", word)
	}
	b.Number, b.Percent = int32(n), percent
	return nil
}
