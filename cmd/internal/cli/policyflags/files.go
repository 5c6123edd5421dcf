package policyflags

import (
	"path/filepath"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/toolchain"
)

// Files returns the files of a policy as a command line or a scenario names it. dir is the
// folder of relative paths. A built-in policy has none.
func Files(dir, policy string) (files []string) {
	names := []string{BaseName(policy)}
	if policies.InlineName(policy) != "" { // such as use: order: ./mine, least-waste
		names = strings.FieldsFunc(policy, func(r rune) bool { return strings.ContainsRune(" \t\n,;:[]", r) })
	}
	for _, name := range names {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		files = append(files, toolchain.Files(name)...)
	}
	return files
}
