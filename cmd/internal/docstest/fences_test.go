package docstest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/jobspec"
)

// languages are the languages of fenced blocks. A block without one would neither be
// executed nor checked.
var languages = []string{"console", "sh", "text", "yaml", "hcl", "json", "go", "mermaid", "c", "rust", "typescript"}

var anyFence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```")

// eachPage calls visit with the name and the text of every page.
func eachPage(t *testing.T, visit func(name, content string)) {
	t.Helper()
	for _, path := range pages(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		visit(filepath.ToSlash(name), string(content))
	}
}

// TestPages_NameOnlyCommandsThatExist checks the command lines of the blocks that are
// not executed: the command, and each of its flags, must be in the help.
func TestPages_NameOnlyCommandsThatExist(t *testing.T) {
	h := loadHelp(t)
	checked := 0
	eachPage(t, func(name, content string) {
		if strings.HasPrefix(name, "docs/reference/") {
			return // generated from the help itself
		}
		for _, m := range anyFence.FindAllStringSubmatch(content, -1) {
			if !slices.Contains(languages, m[1]) {
				t.Errorf("%s: a fenced block has the language %q; use one of %s", name, m[1], strings.Join(languages, ", "))
			}
			if m[1] != "text" {
				continue
			}
			for line := range strings.Lines(m[2]) {
				if problem := h.check(line); problem != "" {
					t.Errorf("%s: %q: %s", name, strings.TrimSpace(line), problem)
				}
				checked++
			}
		}
		for _, m := range inlineCommand.FindAllStringSubmatch(anyFence.ReplaceAllString(content, ""), -1) {
			if problem := h.check(m[1]); problem != "" {
				t.Errorf("%s: %q: %s", name, m[1], problem)
			}
			checked++
		}
	})
	if checked < 100 {
		t.Errorf("checked %d command lines: the pattern does not find them", checked)
	}
}

// Job files in pages can be submitted as they are. A block of another kind is a part of a
// group.
func TestPages_ContainValidJobFiles(t *testing.T) {
	checked := 0
	eachPage(t, func(name, content string) {
		for _, m := range anyFence.FindAllStringSubmatch(content, -1) {
			source := m[2]
			switch isJob := strings.HasPrefix(source, "job \""); {
			case isJob && m[1] != "hcl":
				t.Errorf("%s: a job file has the language %q, want hcl", name, m[1])
			case m[1] != "hcl":
				continue
			case !isJob:
				source = "job \"j\" {\n group \"g\" {\n task \"t\" { driver = \"exec\" }\n" + source + "}\n}\n"
			}
			if _, err := jobspec.Parse("page.hcl", []byte(source)); err != nil {
				t.Errorf("%s: %v\n%s", name, err, source)
			}
			checked++
		}
	})
	if checked < 2 {
		t.Errorf("checked %d job files: the pattern does not find them", checked)
	}
}

// inlineCommand matches a command in the text of a page.
var inlineCommand = regexp.MustCompile("`((?:bin/)?cede(?:-bench)? [^`]+)`")

var (
	cedeWord = regexp.MustCompile(`^(?:\S*/)?(cede(?:-bench)?)$`)
	flagWord = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// check returns the problem of a command line, or "" if it names a command of cede
// with flags that the command has, or another program.
func (h *help) check(line string) string {
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " # ")
	words := strings.Fields(line)
	for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "$" || words[0] == "sudo") {
		words = words[1:]
	}
	if len(words) < 2 || !cedeWord.MatchString(words[0]) {
		return ""
	}
	path := cedeWord.FindStringSubmatch(words[0])[1]
	rest := words[1:]
	if rest[0] == "help" {
		if len(rest) > 1 && rest[1] == strings.ToLower(rest[1]) && !slices.Contains(h.order, rest[1]) && h.commands["cede "+strings.Join(rest[1:], " ")] == "" {
			return "no such help topic"
		}
		return ""
	}
	for len(rest) > 0 && h.commands[path+" "+rest[0]] != "" {
		path, rest = path+" "+rest[0], rest[1:]
	}
	if subcommands.MatchString(h.commands[path]) && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return path + " has no command " + rest[0]
	}
	for _, word := range rest {
		if flag := flagWord.FindString(word); flag != "" && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).MatchString(h.commands[path]) {
			return path + " has no flag " + flag
		}
	}
	return ""
}
