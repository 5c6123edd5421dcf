package counterfactual

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// A Ref describes an allocation or an assignment.
type Ref struct {
	ID, Name, Namespace, JobID string
	NodeID                     string // of a cluster if it is an assignment
	Priority                   int32
}

// Hidden is the name of an object in a namespace that the reader may not see.
const Hidden = "(another namespace)"

// NameByID names every allocation by its ID.
func (a *Answer) NameByID() {
	a.Victim.Name = a.Victim.ID
	for i := range a.Next {
		a.Next[i].Name = a.Next[i].ID
	}
	for i := range a.Changes {
		for k := range a.Changes[i].Instead {
			a.Changes[i].Instead[k].Name = a.Changes[i].Instead[k].ID
		}
	}
}

// Redact returns the answer as a reader may see it who sees only some namespaces: objects
// of other namespaces have no identity, and requests of a hidden job are omitted.
func (a *Answer) Redact(canSee func(namespace string) bool) *Answer {
	out := *a
	out.Victim, out.By = redacted(a.Victim, canSee), redacted(a.By, canSee)
	out.Next = redactedList(a.Next, canSee)
	out.Versions = nil
	out.Changes = nil
	for _, f := range a.Changes {
		if f.Change.Kind == SmallerRequest && !canSee(a.By.Namespace) {
			continue
		}
		f.Instead = redactedList(f.Instead, canSee)
		out.Changes = append(out.Changes, f)
	}
	return &out
}

// Redact returns the forecast as a reader may see it who sees only some namespaces.
func (f *Forecast) Redact(canSee func(namespace string) bool) *Forecast {
	out := *f
	out.Levels = slices.Clone(f.Levels)
	for i := range out.Levels {
		out.Levels[i].Victims = redactedList(out.Levels[i].Victims, canSee)
	}
	return &out
}

func redactedList(list []Ref, canSee func(string) bool) []Ref {
	list = slices.Clone(list)
	for i := range list {
		list[i] = redacted(list[i], canSee)
	}
	return list
}

func redacted(r Ref, canSee func(string) bool) Ref {
	if canSee(r.Namespace) {
		return r
	}
	return Ref{Name: Hidden, Priority: r.Priority}
}

// Text describes the answer in sentences.
func (a *Answer) Text() []string {
	var list []string
	parts := make([]string, 0, len(a.Changes)+1)
	for i := range a.Changes {
		parts = append(parts, a.ChangeText(&a.Changes[i]))
	}
	if len(parts) == 0 {
		list = append(list, "No change that was tried would have spared "+a.Victim.Name+".")
	} else {
		list = append(list, a.Victim.Name+" would have stayed "+strings.Join(parts, ", or ")+".")
	}
	switch {
	case len(a.Next) > 0:
		list = append(list, "If it could not be evicted, "+names(a.Next)+" would be evicted instead.")
	case a.Waiting > 0:
		list = append(list, fmt.Sprintf("If it could not be evicted, nothing else would be: %s would wait.", a.By.Name))
	default:
		list = append(list, "If it could not be evicted, nothing else would have to be.")
	}
	return list
}

// ChangeText describes a change, to follow "would have stayed".
func (a *Answer) ChangeText(f *Flip) string {
	c := &f.Change
	switch c.Kind {
	case HigherPriority:
		return fmt.Sprintf("with priority +%d", c.Priority)
	case LaterDecision:
		text := strconv.FormatInt(int64(c.Later.Minutes()), 10) + " min later"
		if f.Checkpoint {
			text += " (checkpoint)"
		}
		return text
	}
	of := a.By.Name
	if c.Group != "" {
		of += "." + c.Group
	}
	return fmt.Sprintf("if %s had requested only %s %s of %s instead of %s", of, thousands(c.Amount), model.UnitOf(c.Amount, c.Resource), c.Resource, thousands(c.Of))
}

// names lists at most three names.
func names(list []Ref) string {
	const most = 3
	var shown []string
	for _, r := range list[:min(len(list), most)] {
		shown = append(shown, fmt.Sprintf("%s (priority %d)", r.Name, r.Priority))
	}
	if len(list) > most {
		shown = append(shown, fmt.Sprintf("%d more", len(list)-most))
	}
	return strings.Join(shown, ", ")
}

// thousands formats an amount with separators.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
