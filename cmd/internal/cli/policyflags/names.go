package policyflags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// DisplayNames returns the names of policies in results, by argument. The folder of a
// policy is displayed by the name in its manifest, unless that is ambiguous or the name of
// a built-in policy.
func DisplayNames(written []string) map[string]string {
	shown, count := map[string]string{}, map[string]int{}
	for _, w := range written {
		if _, duplicate := shown[w]; duplicate {
			continue
		}
		shown[w] = manifestName(w)
		count[shown[w]]++
	}
	for w, name := range shown {
		if name != w && (count[name] > 1 || slices.Contains(written, name)) {
			shown[w] = w
		}
	}
	numberInline(written, shown)
	return shown
}

// numberInline names several policies that are written on a command line by their number:
// rules-1, rules-2.
func numberInline(written []string, shown map[string]string) {
	n := map[string]int{}
	for i, w := range written {
		name := policies.InlineName(w)
		if name == "" || shown[w] != w || slices.Contains(written[:i], w) {
			continue
		}
		n[name]++
		shown[w] = fmt.Sprintf("%s-%d", name, n[name])
	}
}

// manifestName returns P?key=value with the name of the policy in directory P, if P
// is a policy's directory.
func manifestName(p string) string {
	if name := policies.InlineName(p); name != "" {
		return name
	}
	base := BaseName(p)
	if slices.Contains(builtin.Names(), base) {
		return p
	}
	m, _, err := bundle.ReadManifest(base)
	if err != nil || slices.Contains(builtin.Names(), m.Name) {
		return p
	}
	return m.Name + strings.TrimPrefix(p, base)
}
