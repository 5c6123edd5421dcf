package app

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Set by the linker (see the Makefile). Empty in a build by plain `go build`
// or `go install`, whose own record is used then.
var (
	Version string // a tag, or a commit
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
	b.Version, b.Commit, b.Date = cmp.Or(b.Version, "dev"), cmp.Or(b.Commit, unknown), cmp.Or(b.Date, unknown)
	return b
}

// fill adds what the toolchain recorded where the linker was told nothing.
func (b *Build) fill(recorded *debug.BuildInfo) {
	if v := recorded.Main.Version; v != "" && v != "(devel)" {
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
