package scaffold

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

func files(t *testing.T, lang string) []File {
	t.Helper()
	list, err := Project{Name: "fresh-one", Lang: lang}.Files()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFiles_AreCompleteForEachLanguage(t *testing.T) {
	for _, lang := range bundle.Langs {
		p := Project{Name: "fresh-one", Lang: lang}
		list := files(t, lang)
		for _, want := range []string{p.Source(), "policy.yaml", "README.md", ".gitignore", "scenario.yaml", "cases/least-work.txt", "third_party/cede/LICENSE"} {
			if lang == bundle.Rules && strings.HasPrefix(want, "third_party/") {
				continue // rules need no SDK
			}
			if !slices.ContainsFunc(list, func(f File) bool { return f.Name == want }) {
				t.Errorf("%s: %s is missing", lang, want)
			}
		}
		for _, f := range list {
			switch {
			case strings.HasSuffix(f.Name, "_test.go") && f.SDK:
				t.Errorf("%s: %s requires modules that are not in the module cache", lang, f.Name)
			case f.SDK:
			case bytes.Contains(f.Text, []byte("{%")) || bytes.Contains(f.Text, []byte("Thrifty")) || strings.Contains(f.Name, "tmpl"):
				t.Errorf("%s: %s contains template actions", lang, f.Name)
			case f.Name == bundle.ManifestFile:
				if m, err := bundle.ParseManifest(f.Name, f.Text); err != nil || m.Name != "fresh-one" || m.Build.Lang != lang {
					t.Errorf("%s: %v", lang, err)
				}
			case strings.HasPrefix(f.Name, "cases/"):
				if _, err := policytest.ParseGolden(string(f.Text)); err != nil {
					t.Errorf("%s: %v", f.Name, err)
				}
			}
		}
	}
}

func TestCheckName_AcceptsPortableNames(t *testing.T) {
	for _, name := range []string{"a", "thrifty", "least-waste-2", "x" + strings.Repeat("y", 63)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "-a", "a-", "A", "1a", "a b", "a/b", "a.b", "é", "x" + strings.Repeat("y", 64)} {
		if CheckName(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestWrite_KeepsExistingFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	list := []File{{Name: "a/b", Text: []byte("1")}, {Name: "c", Text: []byte("2")}}
	if err := Write(dir, list); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, list); !errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a", "b")); err != nil || string(text) != "1" {
		t.Error(string(text), err)
	}
}

func TestWrite_RemovesPartialOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := Write(dir, []File{{Name: "a"}, {Name: "a/b"}}); err == nil { // a file cannot be a directory
		t.Fatal("Write succeeded")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("files were left behind", err)
	}
}

// Generated files carry the licence of the repository.
func TestSDK_HasTheLicenceOfTheRepository(t *testing.T) {
	want, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files(t, "c") {
		if f.Name == "third_party/cede/LICENSE" && !bytes.Equal(f.Text, want) {
			t.Error("sdk/LICENSE differs from LICENSE")
		}
	}
}
