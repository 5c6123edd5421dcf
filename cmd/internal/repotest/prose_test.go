package repotest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	heading    = regexp.MustCompile(`(?m)^(#{1,6})\s+(.+?)\s*$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
	target     = regexp.MustCompile(`(?m)^([a-z][a-z-]*):(?:[^=]|$)`)
	entry      = regexp.MustCompile(`^\* \[(CHANGE|FEATURE|ENHANCEMENT|BUGFIX)\] [a-z0-9-]+(, [a-z0-9-]+)*: \S`)
)

func TestProse_LinksLeadSomewhere(t *testing.T) {
	headings := map[string][]string{}
	for _, file := range files(t, ".md") {
		text := codeBlock.ReplaceAllString(read(t, file), "")
		for _, match := range inlineLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(text, ""), -1) {
			if why := brokenLink(t, file, match[1], headings); why != "" {
				t.Errorf("%s links to %s: %s", file, match[1], why)
			}
		}
	}
}

// brokenLink says what is wrong with a link; empty when nothing is, or when it
// leads out of the repository. It adds the anchors of linked pages to headings.
func brokenLink(t *testing.T, file, link string, headings map[string][]string) string {
	t.Helper()
	address, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if address.Scheme != "" || address.Host != "" {
		return ""
	}
	linked := file
	if address.Path != "" {
		linked = path.Join(path.Dir(file), address.Path)
	}
	if strings.HasPrefix(linked, "../") || strings.HasPrefix(linked, "/") {
		return "it leads out of the repository, where a reader has something else or nothing"
	}
	if _, err := os.Stat(filepath.Join(root, linked)); err != nil {
		return "the file does not exist"
	}
	if address.Fragment != "" && strings.HasSuffix(linked, ".md") {
		if headings[linked] == nil {
			headings[linked] = anchors(read(t, linked))
		}
		if !slices.Contains(headings[linked], address.Fragment) {
			return "that page has no such heading"
		}
	}
	return ""
}

// anchors lists the fragments that the headings of a page get.
func anchors(text string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		slug := strings.ToLower(notInSlug.ReplaceAllString(match[2], ""))
		found = append(found, strings.ReplaceAll(slug, " ", "-"))
	}
	return found
}

func TestProse_AnchorsOfHeadings(t *testing.T) {
	got := anchors("# One `two`: three?\n```\n# not this\n```\n## Four-five\n")
	if want := []string{"one-two-three", "four-five"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProse_ContributingNamesEveryTarget(t *testing.T) {
	guide, makefile := read(t, "CONTRIBUTING.md"), read(t, "Makefile")
	targets := target.FindAllStringSubmatch(makefile, -1)
	if len(targets) < 10 {
		t.Fatalf("found %d targets in the Makefile: the pattern has lost them", len(targets))
	}
	for _, match := range targets {
		name := match[1]
		if !regexp.MustCompile(`\bmake ` + name + `\b`).MatchString(guide) {
			t.Errorf("CONTRIBUTING.md does not name `make %s`", name)
		}
		if !regexp.MustCompile(`(?m)^` + name + `:.*## \S`).MatchString(makefile) {
			t.Errorf("target %s has no ## text, which `make help` lists", name)
		}
	}
	for _, match := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(guide, -1) {
		if !slices.ContainsFunc(targets, func(known []string) bool { return known[1] == match[1] }) {
			t.Errorf("CONTRIBUTING.md names `make %s`, which the Makefile does not have", match[1])
		}
	}
}

// TestProse_DecisionRecordsAreComplete checks that each record has the sections of
// a record, that numbers are consecutive, and that the index lists all of them.
func TestProse_DecisionRecordsAreComplete(t *testing.T) {
	index, number := read(t, "docs/adr/README.md"), 0
	for _, file := range files(t, ".md") {
		name, found := strings.CutPrefix(file, "docs/adr/")
		if !found || name == "README.md" {
			continue
		}
		number++
		text := read(t, file)
		if prefix := fmt.Sprintf("%04d-", number); !strings.HasPrefix(name, prefix) || !strings.HasPrefix(text, fmt.Sprintf("# %04d. ", number)) {
			t.Errorf("%s: the name and the heading of the record must start with %04d", file, number)
		}
		for _, section := range []string{"Context", "Decision"} {
			if !strings.Contains(text, "\n## "+section+"\n") {
				t.Errorf("%s: missing section %q", file, section)
			}
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/adr/README.md does not list %s", name)
		}
	}
	if number == 0 {
		t.Error("docs/adr has no records")
	}
}

// TestProse_ReadmeIsShort keeps the first page to one screen for each topic.
func TestProse_ReadmeIsShort(t *testing.T) {
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, at most 150: move details to docs/", lines)
	}
}

// TestProse_ReleasesAreShort keeps the notes of each release to what one reading can hold.
func TestProse_ReleasesAreShort(t *testing.T) {
	for _, release := range strings.Split(read(t, "CHANGELOG.md"), "\n## ")[1:] {
		if lines := strings.Count(release, "\n"); lines > 100 {
			name, _, _ := strings.Cut(release, "\n")
			t.Errorf("CHANGELOG.md: release %s has %d lines, at most 100: merge entries of one area", name, lines)
		}
	}
}

func TestProse_ChangelogEntriesStateKindAndArea(t *testing.T) {
	for line := range strings.Lines(read(t, "CHANGELOG.md")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "* ") && !entry.MatchString(line) {
			t.Errorf("CHANGELOG.md: %q: write * [CHANGE|FEATURE|ENHANCEMENT|BUGFIX] area: what it means to a user", line)
		}
	}
}

func TestProse_ModuleIsBuildableByOthers(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Module  struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != module {
		t.Errorf("go.mod names module %s, want %s", mod.Module.Path, module)
	}
	for _, replaced := range mod.Replace {
		t.Errorf("go.mod replaces %s: a replacement holds here alone, so whoever imports or installs cede would build something else", replaced.Old.Path)
	}
}

// topLevel is all that stands at the root.
var topLevel = []string{
	"builtin", "cmd", "core", "docs", "plugins", "sdk", "policies", "examples", "deploy", "gossip",
	"go.mod", "go.sum", "Makefile", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", ".golangci.yml", ".ci", ".gitignore",
}

func TestProse_RootIsTidy(t *testing.T) {
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("sources without their git history: what is tracked cannot be told from what lies about")
	}
	for file := range strings.Lines(string(out)) {
		first, _, _ := strings.Cut(strings.TrimSpace(file), "/")
		if !slices.Contains(topLevel, first) {
			t.Errorf("%s is tracked: code goes under one of the top-level folders, and prose to where its reader is", strings.TrimSpace(file))
		}
	}
}
