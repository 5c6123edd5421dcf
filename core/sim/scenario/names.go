package scenario

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/suggest"
)

// nameHint describes a valid name, for hints.
const nameHint = "a name of lower-case letters, digits, . and -"

// isName reports whether s is a valid name: [a-z0-9.-]+.
func isName(s string) bool {
	for i := range len(s) {
		if !IsNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// IsNameByte reports whether names may contain the byte.
func IsNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-'
}

// toName returns the valid name most similar to s, or "" if no character remains.
func toName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && IsNameByte(byte(r)) {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}

// name checks a required name.
func (c *valueChecker) name(p *path, field, value string) bool {
	if value == "" {
		c.add(p, field+" is missing", fmt.Sprintf("add `%s: ` and %s", field, nameHint))
		return false
	}
	return c.optionalName(p, value)
}

// optionalName checks a name that may be absent.
func (c *valueChecker) optionalName(p *path, value string) bool {
	if value == "" || isName(value) {
		return true
	}
	remedy := "use allowed characters"
	if better := toName(value); better != "" && len(better) <= 100 {
		remedy = fmt.Sprintf("write %q", better)
	}
	c.add(p, fmt.Sprintf("%.100q is not a valid name: expected lower-case letters, digits, . and -", value), remedy)
	return false
}

// unique checks a required name that must differ from the earlier ones of its list, and
// records it. It records an invalid name as well, so that references to it do not
// cause further problems.
func (c *valueChecker) unique(p *path, list, field, value string, i int, seen map[string]int) {
	if !c.name(p, field, value) && value == "" {
		c.incomplete[list] = true
		return
	}
	if first, ok := seen[value]; ok {
		c.add(p, fmt.Sprintf("duplicate %s %.100q: already used by %s[%d]", field, value, list, first), "use a unique "+field)
		return
	}
	seen[value] = i
}

// maxSuggest is the largest list that is searched for a similar name.
const maxSuggest = 5000

// unknown reports a reference to a name that does not exist.
func (c *valueChecker) unknown(p *path, list, noun, name string, known map[string]int) {
	if c.incomplete[list] {
		return
	}
	remedy := fmt.Sprintf("add it to `%s`, or correct the name", list)
	if len(known) <= maxSuggest && c.problems.len() < maxPrinted {
		candidates := make([]string, 0, len(known))
		for n := range known {
			candidates = append(candidates, n)
		}
		remedy = suggest.DidYouMean(name, sorted(candidates), remedy)
	}
	c.add(p, fmt.Sprintf("unknown %s %.100q", noun, name), remedy)
}
