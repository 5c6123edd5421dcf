package cmdutil

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/model"
)

// idDigits is the length of a shortened generated ID.
const idDigits = 8

// ID returns an ID as tables show it: generated IDs are shortened to a prefix, which
// commands accept.
func (p Page) ID(id string) string {
	switch {
	case p.Wide:
		return id
	case strings.HasPrefix(id, "sha256:"):
		return model.ShortVersion(id)
	case len(id) < 32:
		return id
	}
	return id[:idDigits]
}

// maxShownName is the length of names in tables, in runes.
const maxShownName = 28

// Name returns a name as tables show it: the middle of a long one is replaced by an
// ellipsis, because names of hosts differ at either end.
func (p Page) Name(name string) string {
	runes := []rune(name)
	if p.Wide || len(runes) <= maxShownName {
		return name
	}
	const tail = maxShownName / 2
	return string(runes[:maxShownName-tail-1]) + "…" + string(runes[len(runes)-tail:])
}

// IDs joins IDs as ID prints them.
func (p Page) IDs(list []string) string {
	short := make([]string, len(list))
	for i, id := range list {
		short[i] = p.ID(id)
	}
	return strings.Join(short, ", ")
}

// NewTable returns a table with columns of the given titles; a title that ends in > is
// right-aligned.
func NewTable(titles ...string) *term.Table {
	t := &term.Table{}
	for _, title := range titles {
		text, right := strings.CutSuffix(title, ">")
		t.Columns = append(t.Columns, term.Column{Title: text, Right: right})
	}
	return t
}

// Properties prints pairs of names and values, one a line. Pairs without a value are
// omitted.
func (p Page) Properties(pairs ...string) {
	t := &term.Table{NoHeaders: true, Columns: make([]term.Column, 2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.Row(pairs[i], pairs[i+1])
		}
	}
	_ = t.Write(p.W, p.Style) // p.W stores the error
}

// Age returns the time since a moment in Unix nanoseconds; "" for 0.
func (env *Env) Age(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return FormatAge(env.Clock.Now().Sub(time.Unix(0, unixNano)))
}

// FormatAge returns a duration in its largest unit.
func FormatAge(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// FormatTime returns a time in Unix nanoseconds as RFC 3339; "" for 0.
func FormatTime(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return time.Unix(0, unixNano).UTC().Format(time.RFC3339)
}

// TimeAndAge returns a time and its age.
func (env *Env) TimeAndAge(unixNano int64) string {
	if unixNano == 0 {
		return ""
	}
	return FormatTime(unixNano) + " (" + env.Age(unixNano) + " ago)"
}

// FormatResources returns resources as cpu=500 memory=256.
func FormatResources(m map[string]int64) string {
	order := map[string]int{"cpu": 1, "memory": 2, "disk": 3, "network": 4}
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(cmp.Or(order[a], 9), cmp.Or(order[b], 9)), strings.Compare(a, b))
	})
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = fmt.Sprintf("%s=%d", k, m[k])
	}
	return strings.Join(list, " ")
}

// FormatLabels returns labels as app=web tier=front.
func FormatLabels(m map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, k+"="+m[k])
	}
	return strings.Join(list, " ")
}

// YesNo returns yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// StatusEmphasis returns the emphasis of a status.
func StatusEmphasis(status string) term.Emphasis {
	switch status {
	case "running", "ready", "alive", "complete", "eligible":
		return term.Green
	case "failed", "lost", "down", "dead", "evict":
		return term.Red
	}
	return term.Plain
}

// StatusCell returns a cell with a status, styled by StatusEmphasis.
func StatusCell(status string) term.Cell {
	return term.Cell{Text: status, Look: StatusEmphasis(status)}
}

// Cell returns a cell without a style.
func Cell(text string) term.Cell { return term.Cell{Text: text} }

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// WithReason returns a status with its reason.
func WithReason(status, why string) string {
	if why == "" {
		return status
	}
	return status + ": " + why
}

// MaxRows limits the rows of a section unless the page is wide.
const MaxRows = 20

// Omitted prints how many rows were omitted.
func (p Page) Omitted(all, shown int) {
	if all > shown {
		p.Printf("  and %s more; -o wide shows all\n", Thousands(all-shown))
	}
}
