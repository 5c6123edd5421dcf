package app

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// release is the version of this source tree.
const release = "0.1.0"

// The linker sets these variables (see the Makefile). If they are empty, the record of
// the Go toolchain is used.
var (
	Version string // without a leading v
	Commit  string
	Date    string // of the commit, RFC 3339
)

// Build describes the build of the program, with the field names of the API.
type Build struct {
	Version  string
	Commit   string
	Date     string
	Go       string // the toolchain
	Platform string // system/architecture
}

// Info returns the build of this program.
func Info() Build {
	return info(debug.ReadBuildInfo())
}

const unknown = "unknown"

func info(recorded *debug.BuildInfo, ok bool) Build {
	b := Build{Version: Version, Commit: Commit, Date: Date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if ok {
		b.fill(recorded)
	}
	b.Version, b.Commit, b.Date = cmp.Or(b.Version, release), cmp.Or(b.Commit, unknown), cmp.Or(b.Date, unknown)
	return b
}

// fill adds the values that the toolchain recorded if the linker set none.
func (b *Build) fill(recorded *debug.BuildInfo) {
	// A module version such as v0.0.0-2026… names a commit, not a release.
	if v, ok := strings.CutPrefix(recorded.Main.Version, "v"); ok && !strings.HasPrefix(v, "0.0.0-") {
		b.Version = cmp.Or(b.Version, v)
	}
	for _, s := range recorded.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		}
	}
}
