package app

import (
	"runtime/debug"
	"testing"
)

func TestInfo_LinkerTakesPrecedence(t *testing.T) {
	t.Parallel()
	recorded := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		},
	}
	if b := info(recorded, true); b.Version != "1.2.3" || b.Commit != "abc" || b.Date != "2026-01-02T03:04:05Z" {
		t.Errorf("without linker values: %+v", b)
	}
	t.Cleanup(func() { Version, Commit = "", "" })
	Version, Commit = "2.0.0", "def"
	if b := info(recorded, true); b.Version != "2.0.0" || b.Commit != "def" || b.Date != "2026-01-02T03:04:05Z" {
		t.Errorf("with linker values: %+v", b)
	}
}

func TestInfo_NothingRecorded(t *testing.T) {
	t.Parallel()
	for _, recorded := range []*debug.BuildInfo{nil, {Main: debug.Module{Version: "(devel)"}}, {Main: debug.Module{Version: "v0.0.0-20260102030405-abcdefabcdef"}}} {
		if b := info(recorded, recorded != nil); b.Version != release || b.Commit != "unknown" || b.Date != "unknown" || b.Go == "" || b.Platform == "" {
			t.Errorf("%+v", b)
		}
	}
}
