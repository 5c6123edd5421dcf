package wasm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// trapGuest returns a module of testdata/trap.
func trapGuest(t testing.TB, name string) []byte {
	t.Helper()
	code, err := os.ReadFile("testdata/trap/" + name + ".wasm")
	check(t, err)
	return code
}

// placeOf returns the name of a file and the line that contains text.
func placeOf(t testing.TB, file, text string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	check(t, err)
	before, _, found := strings.Cut(string(source), text)
	if !found {
		t.Fatalf("%s does not contain %q", file, text)
	}
	return filepath.Base(file) + ":" + strconv.Itoa(1+strings.Count(before, "\n"))
}

// trapText returns the error of a call of a module that traps.
func trapText(t *testing.T, code []byte, o wasm.Options) string {
	t.Helper()
	in := start(t, load(t, host(t, o), code, policy.Limits{}), "{}")
	_, err := score(in, 1)
	if err == nil {
		t.Fatal("the guest did not trap")
	}
	return err.Error()
}

// Metering moves code, and lines refer to the code before it.
func TestTrap_NamesFileAndLine(t *testing.T) {
	want := "trap: integer divide by zero in pick (" + placeOf(t, "testdata/trap/pick.h", "// the trap") +
		"), called by cede_score_victims (" + placeOf(t, "testdata/trap/policy.c", "// the caller") + ")"
	for _, e := range engines {
		for _, name := range []string{"v2", "v4", "v5"} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				if got := trapText(t, trapGuest(t, name), e.options); !strings.Contains(got, want) {
					t.Errorf("%s\nwant %s", got, want)
				}
			})
		}
	}
}

// Lines survive the cache of compiled modules, whose entries hold the offsets.
func TestTrap_NamesLineOfCachedModule(t *testing.T) {
	for range 2 {
		got := trapText(t, trapGuest(t, "v4"), wasm.Options{CacheDir: cacheDir()})
		if want := placeOf(t, "testdata/trap/pick.h", "// the trap"); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A damaged table changes the lines of an error at most.
func TestTrap_SurvivesDamagedTables(t *testing.T) {
	const want = "trap: integer divide by zero in pick"
	for _, name := range []string{"v4", "v5"} {
		code := trapGuest(t, name)
		at := bytes.LastIndex(code, []byte(".debug_line"))
		for i, damage := range [][]byte{
			bytes.Repeat([]byte{0xff}, 64), bytes.Repeat([]byte{0}, 64), bytes.Repeat([]byte{0x7f}, 64), {0xf1, 0xff, 0xff, 0x7f}, {0, 0, 0, 0},
		} {
			damaged := slices.Clone(code)
			copy(damaged[at+len(".debug_line"):], damage)
			if got := trapText(t, damaged, wasm.Options{Interpreter: true}); !strings.Contains(got, want) {
				t.Errorf("%s, damage %d: %s", name, i, got)
			}
		}
	}
}
