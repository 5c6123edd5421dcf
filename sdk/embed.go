// Package sdk embeds the sources of the SDK, so that `cede policy init` can copy them
// next to a new policy. The policy then builds without a network, against the SDK
// that its host was built with. Authors import the packages below this one.
package sdk

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed LICENSE ABI.md
//go:embed policy/*.go rules/*.go fmath/*.go abi/*.go serve/*.go serve/policypb/*.go settings/*.go policytest/*.go policytest/soak/*.go
//go:embed c/cede.h c/README.md
//go:embed rust/Cargo.toml rust/README.md rust/src
//go:embed assemblyscript/package.json assemblyscript/README.md assemblyscript/asconfig.json assemblyscript/assembly
var files embed.FS

// langs maps a language to the folders and files that a policy in it needs. The
// licence and the ABI are added for every language.
var langs = map[string][]string{
	"go":             {"policy", "rules", "fmath", "abi", "serve", "settings", "policytest"},
	"c":              {"c"},
	"rust":           {"rust"},
	"assemblyscript": {"assemblyscript"},
}

// Files returns the SDK's files for a language, as paths in FS. Tests are omitted:
// they need modules that the author may not have.
func Files(lang string) []string {
	list := []string{"LICENSE", "ABI.md"}
	for _, root := range langs[lang] {
		err := fs.WalkDir(files, root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(name, "_test.go") {
				list = append(list, name)
			}
			return err
		})
		if err != nil {
			panic(err) // every file is embedded in this binary
		}
	}
	slices.Sort(list)
	return list
}

// Read returns a file that Files lists.
func Read(name string) []byte {
	text, err := files.ReadFile(path.Clean(name))
	if err != nil {
		panic(err) // every file is embedded in this binary
	}
	return text
}
