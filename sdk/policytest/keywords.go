package policytest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Now is the time of every parsed case, in nanoseconds.
const Now = int64(1e18)

// keywords are the attributes that a line may contain as keyword=value. A keyword
// that ends with a colon takes a name, as in label:app=web.
type keywords[T any] map[string]func(of *T, name, value string) error

// set sets the attribute of an item. It returns false for known if the item is an amount.
func (w keywords[T]) set(of *T, item string) (known bool, err error) {
	key, value, ok := strings.Cut(item, "=")
	if !ok {
		return false, nil
	}
	name := ""
	if kind, rest, named := strings.Cut(key, ":"); named {
		key, name = kind+":", rest
	}
	f := w[key]
	if f == nil {
		return false, nil
	}
	if err := f(of, name, value); err != nil {
		return true, fmt.Errorf("%s: %w", item, err)
	}
	return true, nil
}

var preemptorWords = keywords[policy.Preemptor]{
	"namespace": func(p *policy.Preemptor, _, v string) error { p.Namespace = v; return nil },
	"job":       func(p *policy.Preemptor, _, v string) error { p.Job = v; return nil },
	"group":     func(p *policy.Preemptor, _, v string) error { p.Group = v; return nil },
	"type":      func(p *policy.Preemptor, _, v string) error { p.JobType = v; return nil },
	"delta":     func(p *policy.Preemptor, _, v string) error { return parseInt32(&p.Delta, v) },
	"attempts":  func(p *policy.Preemptor, _, v string) error { return parseInt32(&p.Attempts, v) },
	"ports":     func(p *policy.Preemptor, _, v string) error { return parseInt(&p.Ports, v) },
	"waiting":   func(p *policy.Preemptor, _, v string) error { return parseDuration(&p.Waiting, v) },
	"label:":    func(p *policy.Preemptor, name, v string) error { setKey(&p.Labels, name, v); return nil },
	"note:":     func(p *policy.Preemptor, name, v string) error { return parseNumber(&p.Annotations, name, v) },
}

var rowWords = keywords[Row]{
	"namespace": func(r *Row, _, v string) error { r.Namespace = v; return nil },
	"job":       func(r *Row, _, v string) error { r.Job = v; return nil },
	"group":     func(r *Row, _, v string) error { r.Group = v; return nil },
	"evictions": func(r *Row, _, v string) error {
		evictions, limit, _ := strings.Cut(v, "/")
		return errors.Join(parseInt32(&r.Evictions, evictions), parseInt32(&r.EvictionLimit, limit))
	},
	"age": func(r *Row, _, v string) error {
		err := parseDuration(&r.Age, v)
		r.LostWork = cmp.Or(r.LostWork, r.Age)
		return err
	},
	"lostwork": func(r *Row, _, v string) error { return parseDuration(&r.LostWork, v) },
	"budget":   func(r *Row, _, v string) error { r.Budgets = append(r.Budgets, v); return nil },
	"fits":     func(r *Row, _, v string) error { return parseRelocation(&r.Relocation, v) },
	"label:":   func(r *Row, name, v string) error { setKey(&r.Labels, name, v); return nil },
	"note:":    func(r *Row, name, v string) error { return parseNumber(&r.Annotations, name, v) },
}

var optionWords = keywords[Option]{
	"follows": func(o *Option, _, v string) error { return parseOutlook(&o.Follows, v) },
}

// parseOutlook parses LOSTWORK/DEPTH/DELAY.
func parseOutlook(to *Outlook, text string) error {
	lost, rest, _ := strings.Cut(text, "/")
	depth, delay, ok := strings.Cut(rest, "/")
	if !ok {
		return errors.New("must be LOSTWORK/DEPTH/DELAY")
	}
	return errors.Join(parseDuration(&to.LostWork, lost), parseInt32(&to.Depth, depth), parseDuration(&to.Delay, delay))
}

// The values of fits: where a row could run instead. The second may be followed by the
// highest priority that it would evict there, and by the work that it would lose.
const (
	fitsElsewhere = "elsewhere"
	fitsEvicting  = "evicting"
	fitsNowhere   = "nowhere"
)

// parseRelocation parses fitsElsewhere, fitsNowhere, or evicting/PRIORITY/LOSTWORK.
func parseRelocation(to *Relocation, text string) error {
	word, cost, _ := strings.Cut(text, "/")
	switch {
	case word == fitsElsewhere && cost == "":
		*to = Relocation{}
		return nil
	case word == fitsNowhere && cost == "":
		*to = Relocation{Where: policy.RelocationNone}
		return nil
	case word != fitsEvicting:
		return fmt.Errorf("must be %s, %s/PRIORITY/LOSTWORK or %s", fitsElsewhere, fitsEvicting, fitsNowhere)
	}
	priority, lost, _ := strings.Cut(cost, "/")
	*to = Relocation{Where: policy.RelocationEvicts}
	return errors.Join(parseInt32(&to.Priority, priority), parseDuration(&to.LostWork, cmp.Or(lost, "0s")))
}

func parseInt32(to *int32, text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("invalid value %q: must be a whole number of 32 bits", text)
	}
	*to = int32(n)
	return nil
}

func parseInt(to *int, text string) error {
	var n int32
	err := parseInt32(&n, text)
	*to = int(n)
	return err
}

func parseFloat(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("invalid value %q: must be a finite number", text)
	}
	return x, nil
}

func parseDuration(to *int64, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("invalid value %q: must be a duration such as 1h30m", text)
	}
	*to = int64(d)
	return nil
}

func parseNumber(to *map[string]float64, name, text string) error {
	x, err := parseFloat(text)
	setKey(to, name, x)
	return err
}

func setKey[V any](to *map[string]V, key string, v V) {
	if *to == nil {
		*to = map[string]V{}
	}
	(*to)[key] = v
}
